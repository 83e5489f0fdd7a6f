//! What went wrong, in words, and the exit code that goes with it.

use std::error::Error;

use locktopus::{BackendError, BackendErrorKind, ConnectError, LockError};

use crate::exit::Exit;

/// A command did not do what it was asked to.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { exit, message }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    fn of(exit: Exit, error: &dyn Error) -> Self {
        Self::new(exit, chain(error))
    }
}

/// An error with everything it came from, each said once.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        next = cause.source();
    }
    text
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        let exit = match &error {
            LockError::Name(_)
            | LockError::Option(_)
            | LockError::Ticket { .. }
            | LockError::NotReentrant { .. }
            | LockError::UpgradeRefused { .. } => Exit::Usage,
            LockError::WaitTimeout { source: None, .. } => Exit::Busy,
            LockError::WaitTimeout {
                source: Some(source),
                ..
            }
            | LockError::Backend { source, .. } => of_backend(source),
            LockError::Lost { .. } => Exit::Lost,
            _ => Exit::Failed,
        };
        Self::of(exit, &error)
    }
}

impl From<BackendError> for Failure {
    fn from(error: BackendError) -> Self {
        Self::of(of_backend(&error), &error)
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let exit = match &error {
            ConnectError::Unreachable { .. } => Exit::Unavailable,
            ConnectError::Backend { source, .. } => of_backend(source),
            ConnectError::Unsafe { .. } => Exit::Failed,
            _ => Exit::Config,
        };
        Self::of(exit, &error)
    }
}

fn of_backend(error: &BackendError) -> Exit {
    match error.kind() {
        BackendErrorKind::Denied => Exit::Denied,
        BackendErrorKind::Unavailable
        | BackendErrorKind::Timeout
        | BackendErrorKind::Closed
        | BackendErrorKind::NoQuorum
        | BackendErrorKind::NotReplicated
        | BackendErrorKind::Protocol => Exit::Unavailable,
        _ => Exit::Failed,
    }
}
