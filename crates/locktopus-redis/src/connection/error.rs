//! Converts errors of redis-rs, and defines the errors of [`connect`](crate::connect()).

use locktopus_protocol::{ClientError, HostPort};
use redis::{ErrorKind, RedisError, ServerError};

/// Why no client could be built.
///
/// No variant contains a password. Servers are named by host and port, files by path.
///
/// ```no_run
/// # async fn example(options: locktopus_protocol::ConnectOptions) {
/// use locktopus_redis::ConnectError;
///
/// match locktopus_redis::connect(&options).await {
///     Ok(client) => println!("{client:?}"),
///     Err(error @ ConnectError::Unreachable { .. }) => println!("later, perhaps: {error}"),
///     Err(error) => println!("never, with these options: {error}"),
/// }
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The options name no server.
    #[error("no {what} given: name at least one as host:port")]
    NoServers {
        /// What is missing: `cluster node` or `sentinel`.
        what: &'static str,
    },
    /// A cluster has only database 0.
    #[error(
        "database {given} asked for, but a cluster has only database 0: leave the database out"
    )]
    ClusterDatabase {
        /// The database in the options.
        given: u32,
    },
    /// The server does not accept this client name.
    #[error("client_name {0}")]
    ClientName(&'static str),
    /// The options ask for TLS, but this build excludes it.
    #[error(
        "the connection options ask for TLS, but locktopus-redis was built without it: \
         enable its cargo feature `tls`"
    )]
    TlsNotBuiltIn,
    /// The options ask for the cluster connection of redis-rs, but this build excludes it.
    #[error(
        "the connection options ask for the cluster connection of redis-rs, but locktopus-redis was built without it: \
         enable its cargo feature `cluster-async`"
    )]
    RouterNotBuiltIn,
    /// The cluster connection of redis-rs made by this crate does not support TLS.
    #[error(
        "router=client makes connections without TLS, because redis-rs takes its cryptography from the process: hand in a \
         connection that you have configured, or leave the option out"
    )]
    RouterTls,
    /// The program's cluster connection retries commands that may have run.
    #[error(
        "the cluster connection that was handed in repeats requests: build its client with `.retries(0)`"
    )]
    RouterRetries,
    /// The cluster connection of redis-rs is unusable.
    #[error("the cluster connection of redis-rs: {0}")]
    Router(String),
    /// The TLS settings are unusable. Names the certificate or key file.
    #[error("TLS: {0}")]
    Tls(String),
    /// `connect` was called outside a tokio runtime, which drives the connections.
    #[error("called outside a tokio runtime, which drives the connections")]
    NoRuntime,
    /// No usable server could be reached.
    #[error("cannot connect to {target}: {reason}")]
    Unreachable {
        /// The deployment, by kind and addresses.
        target: String,
        /// The error for the last address tried.
        reason: String,
    },
}

/// Converts an error reply. Its first word becomes the code.
pub(crate) fn rejected(error: &ServerError) -> ClientError {
    ClientError::Rejected {
        code: error.code().to_owned(),
        message: error.details().unwrap_or_default().to_owned(),
    }
}

/// Converts an error of a command that a connection had accepted.
///
/// redis-rs does not say whether the bytes left the process. So anything but an answer of the
/// server means that the command may have run.
pub(crate) fn unanswered(error: &RedisError, server: &HostPort) -> ClientError {
    if let (ErrorKind::Server(_) | ErrorKind::Extension, Some(code)) = (error.kind(), error.code())
    {
        return ClientError::Rejected {
            code: code.to_owned(),
            message: error.detail().unwrap_or_default().to_owned(),
        };
    }
    ClientError::MaybeExecuted(format!("{server}: {error}"))
}

/// An error while connecting, so no command has left yet.
pub(crate) fn not_connected(why: &str, server: &HostPort) -> ClientError {
    ClientError::NotSent(format!("cannot connect to {server}: {why}"))
}

/// The first word of an error reply, if the result is one.
pub(crate) fn code_of<T>(result: &Result<T, ClientError>) -> Option<&str> {
    match result {
        Err(ClientError::Rejected { code, .. }) => Some(code),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> HostPort {
        HostPort {
            host: "127.0.0.1".to_owned(),
            port: 1,
        }
    }

    #[test]
    fn an_io_error_may_have_executed() {
        let broken = RedisError::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        assert!(matches!(
            unanswered(&broken, &server()),
            ClientError::MaybeExecuted(_)
        ));
        let garbled = RedisError::from((ErrorKind::Parse, "bad reply"));
        assert!(matches!(
            unanswered(&garbled, &server()),
            ClientError::MaybeExecuted(_)
        ));
    }

    #[test]
    fn a_server_error_keeps_its_first_word() {
        let moved = redis::make_extension_error("MYERR".to_owned(), Some("boom now".to_owned()));
        assert_eq!(
            unanswered(&moved, &server()),
            ClientError::rejected("MYERR boom now")
        );
    }

    #[test]
    fn features_are_named() {
        assert!(ConnectError::TlsNotBuiltIn.to_string().contains("`tls`"));
    }
}
