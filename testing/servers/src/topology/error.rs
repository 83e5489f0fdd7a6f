//! All errors around servers, each with what to do next.

use std::path::PathBuf;
use std::time::Duration;

use crate::topology::provider::ProviderKind;
use crate::topology::resp::Resp;

/// Why a deployment could not be started, driven or inspected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// A name was not one of the known ones.
    #[error("unknown {what} {given:?}: use one of {known}")]
    UnknownWord {
        /// The kind of name.
        what: &'static str,
        /// The given text.
        given: String,
        /// The known names.
        known: &'static str,
    },
    /// The specification contradicts itself.
    #[error("impossible topology specification: {problem}")]
    BadSpec {
        /// The contradiction.
        problem: String,
    },
    /// No server program was found.
    #[error(
        "no server program found (tried {tried}): install redis-server or valkey-server, \
         or name one with LOCKTOPUS_SERVER_BIN"
    )]
    NoServerProgram {
        /// The places that were searched.
        tried: String,
    },
    /// No free block of ports was found.
    #[error("no {count} contiguous free ports below {below}: stop other deployments and retry")]
    NoPorts {
        /// The requested number of ports.
        count: u16,
        /// End of the searched range.
        below: u16,
    },
    /// A file or process operation failed.
    #[error("cannot {doing} {path}: {source}", path = path.display())]
    Io {
        /// The operation.
        doing: &'static str,
        /// Its path.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A server ended unexpectedly.
    #[error("{node} ended with {how}; its last output:\n{log}")]
    ServerEnded {
        /// Name of the node.
        node: String,
        /// How it ended.
        how: String,
        /// The tail of its output.
        log: String,
    },
    /// A verb needs a running server and the server is not running, or the other way round.
    #[error("{node} is {state}: {hint}")]
    WrongState {
        /// Name of the node.
        node: String,
        /// Its present state.
        state: &'static str,
        /// What to call first.
        hint: &'static str,
    },
    /// A condition did not come true in time.
    #[error("{what} not reached within {within:?}; last seen: {last_seen}")]
    NotReached {
        /// The awaited condition.
        what: String,
        /// How long the wait was.
        within: Duration,
        /// The last observation.
        last_seen: String,
    },
    /// A server did not answer in time.
    #[error("{node} did not answer {command} within {within:?}")]
    NoAnswer {
        /// Name of the node.
        node: String,
        /// First word of the command; arguments may be secret.
        command: String,
        /// How long the wait was.
        within: Duration,
    },
    /// The connection to a server failed.
    #[error("{node} at its admin port: {command} failed: {source}")]
    Connection {
        /// Name of the node.
        node: String,
        /// First word of the command.
        command: String,
        /// The cause.
        source: std::io::Error,
    },
    /// A server answered with an error.
    #[error("{node} refused {command}: {message}")]
    Refused {
        /// Name of the node.
        node: String,
        /// First word of the command.
        command: String,
        /// The server's text.
        message: String,
    },
    /// A server's answer does not fit the command.
    #[error("{node} answered {command} with what is no answer to it: {reply}")]
    Odd {
        /// Name of the node.
        node: String,
        /// The command.
        command: String,
        /// The answer.
        reply: String,
    },
    /// This provider lacks the verb.
    #[error("{verb} is not available with the {provider} provider: it needs {needs}")]
    Unsupported {
        /// The verb.
        verb: String,
        /// The provider in use.
        provider: ProviderKind,
        /// How to get it.
        needs: String,
    },
    /// The certificate files of the TLS topology could not be made.
    #[error("cannot make certificates: {message}")]
    Certificates {
        /// The cause.
        message: String,
    },
    /// A container image is not on this machine.
    #[error(
        "container image {image} is not on this machine: run `scripts/build-images {image}`, \
         pull it, or use the plain provider"
    )]
    ImageMissing {
        /// The image.
        image: String,
    },
    /// The container engine could not be reached or refused.
    #[error(
        "container engine could not {doing}: {message} (is the engine running? \
         otherwise use the plain provider)"
    )]
    Engine {
        /// The operation.
        doing: String,
        /// The engine's text.
        message: String,
    },
}

impl TopologyError {
    /// An error: the server of this name gave this command an answer that does not fit.
    #[must_use]
    pub fn odd(node: &str, command: &str, reply: &Resp) -> Self {
        Self::Odd {
            node: node.to_owned(),
            command: command.to_owned(),
            reply: format!("{reply:?}"),
        }
    }

    pub(crate) fn io(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            doing,
            path,
            source,
        }
    }

    /// Whether another block of ports might succeed.
    pub(crate) fn is_address_in_use(&self) -> bool {
        match self {
            Self::ServerEnded { log, .. } => {
                log.contains("Address already in use") || log.contains("Failed listening on port")
            }
            Self::Engine { message, .. } => {
                message.contains("port is already allocated")
                    || message.contains("address already in use")
            }
            _ => false,
        }
    }
}
