//! The error of an attempt that wants more permits than exist:
//! `TOOFEW <number of permits, -1 if not set>`.

use locktopus_contract::{AcquireAttempt, BackendError, BackendErrorKind};

/// The first word of such an error. The script took no permit.
pub(crate) const CODE: &str = "TOOFEW";

/// Turns such an error into a readable one; returns other errors unchanged.
pub(crate) fn tell(error: BackendError, attempt: &AcquireAttempt) -> BackendError {
    let said = error.message().strip_prefix(CODE).map(str::trim);
    let Some(total) = said.filter(|_| error.kind() == BackendErrorKind::TooFewPermits) else {
        return error;
    };
    let total = total.parse().ok();
    BackendError::too_few_permits(error.backend(), &attempt.target, attempt.permits, total)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use locktopus_contract::{
        Executed, LockKind, LockName, LockTarget, OwnerId, TooFewPermits, clock,
    };

    use super::*;

    #[test]
    fn how_many_there_are_is_said() {
        let target = LockTarget::new(LockName::new("it").unwrap(), LockKind::PermitSemaphore);
        let deadline = clock::timer_in(Duration::from_secs(1));
        let (owner, lease) = (OwnerId::generate(), Duration::from_secs(1));
        let mut attempt = AcquireAttempt::new(target, owner, lease, deadline);
        attempt.permits = 7;
        for (message, total) in [("TOOFEW 5", Some(5)), ("TOOFEW -1", None)] {
            let kind = BackendErrorKind::TooFewPermits;
            let error = BackendError::new("test", kind, Executed::No, message);
            let told = tell(error, &attempt);
            let source = std::error::Error::source(&told).unwrap();
            let few: &TooFewPermits = source.downcast_ref().unwrap();
            assert_eq!((few.asked, few.total), (7, total));
            assert_eq!(told.executed(), Executed::No);
        }
        let kind = BackendErrorKind::Refused;
        let other = BackendError::new("test", kind, Executed::No, "TOOFEW 5");
        assert_eq!(tell(other, &attempt).message(), "TOOFEW 5");
    }
}
