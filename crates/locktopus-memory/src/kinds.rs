//! The kinds of locks that this backend has.

use locktopus_contract::{BackendError, BackendErrorKind, LockKind, LockTarget, NameError};

use super::{BACKEND_NAME, error};

/// Refuses kinds that the table was not written for. The table could handle any kind by its mode,
/// but a kind from a later version of the contract may need more than that.
pub(super) fn check_known(target: &LockTarget) -> Result<(), NameError> {
    match target.kind() {
        LockKind::Reentrant
        | LockKind::Mutex(_)
        | LockKind::Fair
        | LockKind::Read
        | LockKind::Write
        | LockKind::Semaphore
        | LockKind::PermitSemaphore
        | LockKind::RateLimiter
        | LockKind::Latch => Ok(()),
        unknown => Err(NameError::UnsupportedKind {
            name: target.name().as_str().to_owned(),
            kind: unknown.clone(),
            backend: BACKEND_NAME,
            reason: "this version of the backend does not know that kind",
        }),
    }
}

pub(super) fn refuse_latch(target: &LockTarget) -> Result<(), BackendError> {
    match target.kind() {
        LockKind::Latch => Err(error(
            BackendErrorKind::Unsupported,
            "a latch is waited for, not held",
        )),
        _ => Ok(()),
    }
}
