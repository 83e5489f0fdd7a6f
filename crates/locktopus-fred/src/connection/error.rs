//! Errors of this crate, and the translation of fred's errors into the only question a lock asks:
//! can the command have run?

use locktopus_protocol::ClientError;

/// Why [`connect`](crate::connect) did not give a client.
///
/// No variant ever carries a password.
///
/// ```no_run
/// # async fn example(options: locktopus_protocol::ConnectOptions) {
/// use locktopus_fred::ConnectError;
///
/// match locktopus_fred::connect(&options).await {
///     Ok(client) => println!("{client:?}"),
///     Err(error @ ConnectError::Unreachable { .. }) => println!("later, perhaps: {error}"),
///     Err(error) => println!("never, with these options: {error}"),
/// }
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// An option contradicts another one or cannot be used with this client.
    #[error("option `{option}`: {problem}")]
    InvalidOption {
        /// The field of [`ConnectOptions`](locktopus_protocol::ConnectOptions).
        option: &'static str,
        /// What is wrong and what to do.
        problem: String,
    },
    /// TLS was asked for, but this build cannot do it.
    #[error("TLS was asked for, but locktopus-fred was built without its feature `tls`: enable it")]
    TlsNotBuilt,
    /// The TLS settings could not be used.
    #[error("TLS: {0}")]
    Tls(String),
    /// It was called outside a tokio runtime, which drives the connections.
    #[error("called outside a tokio runtime, which drives the connections")]
    NoRuntime,
    /// No server could be reached, or none accepted the login.
    #[error("cannot connect to {target}: {reason}")]
    Unreachable {
        /// The addresses that were tried.
        target: String,
        /// What the last attempt said.
        reason: String,
    },
}

/// Translates an error that fred made up itself: never a server's answer to *this* command.
///
/// fred says nothing about whether the bytes left, so the honest answer is "maybe".
pub(crate) fn maybe_executed(error: &fred::error::Error) -> ClientError {
    ClientError::MaybeExecuted(describe(error))
}

/// fred's error as one line. Its details are I/O errors, fixed sentences or a server's error line.
pub(crate) fn describe(error: &fred::error::Error) -> String {
    format!("{} ({})", error.details(), error.kind().to_str())
}

/// What every call gets after [`close`](locktopus_protocol::RedisClient::close).
pub(crate) fn closed() -> ClientError {
    ClientError::NotSent("the client was closed".to_owned())
}
