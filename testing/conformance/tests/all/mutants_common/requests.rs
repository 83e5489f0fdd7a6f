//! Made-up requests and answers of mutants.

use std::time::Duration;

use locktopus_core::{
    AcquireAttempt, AttemptOutcome, BackendError, BackendErrorKind, Executed, ExtendRequest,
    FencingToken, LockName, LockTarget, ReleaseRequest,
};
use tokio::time::Instant;

pub(crate) fn far() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

pub(crate) fn error() -> BackendError {
    BackendError::new(
        "mutant",
        BackendErrorKind::Timeout,
        Executed::No,
        "too late",
    )
}

pub(crate) fn attempt(request: &ExtendRequest) -> AcquireAttempt {
    AcquireAttempt::new(
        request.target.clone(),
        request.owner.clone(),
        request.lease,
        far(),
    )
}

pub(crate) fn release(request: &ExtendRequest) -> ReleaseRequest {
    ReleaseRequest::new(request.target.clone(), request.owner.clone(), far())
}

pub(crate) fn granted(token: Option<u64>) -> AttemptOutcome {
    AttemptOutcome::Granted {
        token: token.and_then(FencingToken::new),
    }
}

pub(crate) fn renamed(target: &LockTarget, name: &str) -> LockTarget {
    LockTarget::new(LockName::new(name).unwrap(), target.kind().clone())
}

/// A name as a careless backend stores it: case and braces are ignored.
pub(crate) fn folded(name: &str) -> String {
    name.to_lowercase().replace(['{', '}'], "")
}
