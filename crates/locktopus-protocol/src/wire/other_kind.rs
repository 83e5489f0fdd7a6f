//! The error of a script that finds the name in use as another kind:
//! `WRONGKIND <index in the group, from 0> <kind found>`.

use locktopus_contract::{BackendError, BackendErrorKind, LockKind, LockTarget};

/// The first word of such an error. The script changed nothing.
pub(crate) const CODE: &str = "WRONGKIND";
/// How a script begins to describe a number without a mark.
const NUMBER: &str = "a number (";

/// Turns such an error into a readable one that names the lock; returns other errors unchanged.
pub(crate) fn tell<'a>(
    error: BackendError,
    target: impl FnOnce(usize) -> &'a LockTarget,
) -> BackendError {
    let said = error.message().strip_prefix(CODE);
    let said = said.and_then(|said| said.trim_start().split_once(' '));
    let Some((index, found)) = said.filter(|_| error.kind() == BackendErrorKind::OtherKind) else {
        return error;
    };
    let target = target(index.parse().unwrap_or(0));
    BackendError::other_kind(error.backend(), target, precise(found, target.kind()))
}

/// Names the kind of a number without a mark. Redisson's have none, and the script takes them for
/// the requested kind, unless another kind has holders.
fn precise<'a>(found: &'a str, asked: &LockKind) -> &'a str {
    match asked {
        LockKind::Semaphore if found.starts_with(NUMBER) => "permit_semaphore",
        LockKind::PermitSemaphore if found.starts_with(NUMBER) => "semaphore",
        LockKind::Latch if found.starts_with(NUMBER) => "semaphore or permit_semaphore",
        _ => found,
    }
}

#[cfg(test)]
mod tests {
    use locktopus_contract::{Executed, LockName};

    use super::*;

    #[test]
    fn what_is_there_and_what_was_asked_for_are_said() {
        let kinds = [LockKind::Reentrant, LockKind::Semaphore];
        let targets = kinds.map(|kind| LockTarget::new(LockName::new("it").unwrap(), kind));
        let error = |kind, message| BackendError::new("test", kind, Executed::No, message);
        let kind = BackendErrorKind::OtherKind;
        let told = tell(error(kind, "WRONGKIND 1 rw_lock"), |index| &targets[index]);
        let text = told.to_string();
        assert!(
            text.contains("rw_lock") && text.contains("semaphore"),
            "{text}"
        );
        assert_eq!(told.executed(), Executed::No);
        let number = "WRONGKIND 1 a number (semaphore, permit_semaphore or latch)";
        let text = tell(error(kind, number), |index| &targets[index]).to_string();
        let expected = "in use as permit_semaphore and cannot be a semaphore too";
        assert!(text.contains(expected), "{text}");
        let other = tell(error(BackendErrorKind::Refused, "WRONGKIND 0 x"), |_| {
            &targets[0]
        });
        assert_eq!(other.message(), "WRONGKIND 0 x");
    }
}
