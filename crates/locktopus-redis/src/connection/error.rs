//! From the errors of redis-rs to the ones of the seam, and the errors of
//! [`connect`](crate::connect()).

use locktopus_protocol::{ClientError, HostPort};
use redis::{ErrorKind, RedisError, ServerError};

/// Why no client could be built.
///
/// No variant carries a password: servers are named by host and port, files by their path.
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
    /// Servers do not accept this name of a client.
    #[error("client_name {0}")]
    ClientName(&'static str),
    /// The options ask for TLS, which this build leaves out.
    #[error(
        "the connection options ask for TLS, but locktopus-redis was built without it: \
         enable its cargo feature `tls`"
    )]
    TlsNotBuiltIn,
    /// The options ask for the cluster connection of redis-rs, which this build leaves out.
    #[error(
        "the connection options ask for the cluster connection of redis-rs, but locktopus-redis was built without it: \
         enable its cargo feature `cluster-async`"
    )]
    RouterNotBuiltIn,
    /// A cluster connection of redis-rs that this crate would make cannot encrypt.
    #[error(
        "router=client makes connections without TLS, because redis-rs takes its cryptography from the process: hand in a \
         connection that you have configured, or leave the option out"
    )]
    RouterTls,
    /// A cluster connection that was handed in sends again what may have run.
    #[error(
        "the cluster connection that was handed in repeats requests: build its client with `.retries(0)`"
    )]
    RouterRetries,
    /// The cluster connection of redis-rs cannot be used.
    #[error("the cluster connection of redis-rs: {0}")]
    Router(String),
    /// The TLS settings cannot be used: a certificate or key file, which is named.
    #[error("TLS: {0}")]
    Tls(String),
    /// It was called outside a tokio runtime, which drives the connections.
    #[error("called outside a tokio runtime, which drives the connections")]
    NoRuntime,
    /// No server could be reached, or none that could be used.
    #[error("cannot connect to {target}: {reason}")]
    Unreachable {
        /// Which deployment, by its kind and addresses.
        target: String,
        /// What went wrong with the last address tried.
        reason: String,
    },
}

/// An error reply of the server, with its exact first word as the code.
pub(crate) fn rejected(error: &ServerError) -> ClientError {
    ClientError::Rejected {
        code: error.code().to_owned(),
        message: error.details().unwrap_or_default().to_owned(),
    }
}

/// An error of a command that was handed to a connection.
///
/// redis-rs does not say whether the bytes left the process, so everything that is not an answer of
/// the server counts as possibly executed.
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

/// An error while a connection was being made: no command can have left yet.
pub(crate) fn not_connected(why: &str, server: &HostPort) -> ClientError {
    ClientError::NotSent(format!("cannot connect to {server}: {why}"))
}

/// The first word of an error reply, if it is one.
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
