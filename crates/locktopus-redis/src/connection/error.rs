//! Converts errors of redis-rs.

use locktopus_protocol::{ClientError, HostPort};
use redis::{ErrorKind, RedisError, ServerError};

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
}
