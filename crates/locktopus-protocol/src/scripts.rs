//! The Lua scripts, each with its digest.
//!
//! What every kind of lock does the same way (the queue, the hand-off, tokens) is written once, in `lua/part`. A script
//! is its parts in order: the arguments that parts need, the parts, and the script's own text.

mod kinds;
mod others;
mod script;

use locktopus_core::LockKind;

pub use kinds::{
    FAIR, KINDS, KindScripts, LOCK, MUTEX, NOTIFYING_MUTEX, PERMITS, READ, SEMAPHORE, WRITE,
};
pub use others::{
    CLASSIFY, GROUP_ACQUIRE, GUARDED_WRITE, KEEP_TOKENS, LATCH, LATCH_READ, LOCK_LINGER,
    MUTEX_LINGER, OTHERS, PERMITS_COUNTER, PERMITS_READ, SEMAPHORE_COUNTER, SEMAPHORE_READ,
    WAIT_OFFSET,
};
pub use script::Script;

pub(crate) use kinds::QUARANTINED_KINDS;
pub(crate) use others::{
    QUARANTINED_GROUP_ACQUIRE, QUARANTINED_OTHERS, QUARANTINED_PERMITS_COUNTER,
    QUARANTINED_SEMAPHORE_COUNTER,
};

/// The scripts of a kind; none if it has none.
pub(crate) fn of(kind: &LockKind) -> Option<&'static KindScripts> {
    position(kind).map(|at| KINDS[at])
}

/// The script that leaves a lock of this kind held by nobody; none if it cannot be.
pub(crate) fn linger(kind: &LockKind) -> Option<&'static Script> {
    match kind {
        LockKind::Reentrant | LockKind::Fair => Some(&LOCK_LINGER),
        LockKind::Mutex(_) => Some(&MUTEX_LINGER),
        _ => None,
    }
}

/// Where the scripts of a kind are among those of all kinds.
pub(crate) fn position(kind: &LockKind) -> Option<usize> {
    match kind {
        LockKind::Reentrant => Some(0),
        LockKind::Mutex(profile) if profile.notifies() => Some(2),
        LockKind::Mutex(_) => Some(1),
        LockKind::Fair => Some(3),
        LockKind::Read => Some(4),
        LockKind::Write => Some(5),
        LockKind::Semaphore => Some(6),
        LockKind::Permits => Some(7),
        _ => None,
    }
}

/// A number below sixteen for the kinds whose holds one script extends together. Kinds without scripts have a number of
/// their own: a batch of them must be refused, and not be run by the script of another kind.
pub(crate) fn index(kind: &LockKind) -> u32 {
    let at = match kind {
        // All mutexes are extended by the same script.
        LockKind::Mutex(_) => Some(1),
        kind => position(kind),
    };
    at.unwrap_or(KINDS.len()) as u32
}

/// The letter by which scripts know of which kind a lock is and how it is wanted; none if the kind has no scripts.
pub(crate) fn letter(kind: &LockKind) -> Option<&'static [u8]> {
    match kind {
        LockKind::Reentrant => Some(b"x"),
        LockKind::Mutex(_) => Some(b"m"),
        LockKind::Fair => Some(b"f"),
        LockKind::Read => Some(b"r"),
        LockKind::Write => Some(b"w"),
        LockKind::Semaphore => Some(b"s"),
        LockKind::Permits => Some(b"p"),
        _ => None,
    }
}

/// Every script there is.
pub fn all() -> impl Iterator<Item = &'static Script> {
    let kinds = KINDS.iter().chain(QUARANTINED_KINDS);
    let others = OTHERS.iter().chain(QUARANTINED_OTHERS);
    kinds.flat_map(|kind| kind.all()).chain(others.copied())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use locktopus_core::MutexProfile;

    use super::*;

    /// Every kind that has scripts, and both sorts of mutexes.
    fn kinds() -> Vec<LockKind> {
        let mutex = |profile| LockKind::Mutex(Arc::new(profile));
        vec![
            LockKind::Reentrant,
            mutex(MutexProfile::default()),
            mutex(MutexProfile::python_redis_lock()),
            LockKind::Fair,
            LockKind::Read,
            LockKind::Write,
            LockKind::Semaphore,
            LockKind::Permits,
        ]
    }

    #[test]
    fn every_script_of_a_kind_belongs_to_one() {
        let positions: Vec<_> = kinds().iter().map(position).collect();
        let all: Vec<_> = (0..KINDS.len()).map(Some).collect();
        assert_eq!(positions, all, "a kind is missing here, or in `position`");
    }

    #[test]
    fn kinds_of_one_batch_have_one_script() {
        for one in kinds() {
            assert!(index(&one) < 16, "{one:?}");
            for other in kinds().iter().filter(|other| index(other) == index(&one)) {
                let [script, same] = [&one, other].map(|kind| of(kind).unwrap().extend.source);
                assert_eq!(script, same, "{one:?}, {other:?}");
            }
        }
    }

    /// A latch stands for all that have no scripts, as kinds that this crate does not know would.
    #[test]
    fn a_kind_without_scripts_is_taken_for_no_other() {
        let without = LockKind::Latch;
        assert!(of(&without).is_none());
        assert_eq!(letter(&without), None);
        assert!(index(&without) < 16);
        for kind in kinds() {
            assert_ne!(index(&without), index(&kind), "{kind:?}");
        }
    }

    #[test]
    fn each_kind_has_the_letter_that_its_scripts_know() {
        for kind in kinds() {
            let letter = std::str::from_utf8(letter(&kind).unwrap()).unwrap();
            let source = of(&kind).unwrap().acquire.source;
            // The last line that says so counts: the fair lock changes what the lock says.
            let said = source.lines().rfind(|line| {
                let assigned = line.split_once(" = ");
                assigned.is_some_and(|(names, _)| names.contains("letters"))
            });
            let letters = said.and_then(|line| line.rsplit('\'').nth(1));
            assert!(
                letters.is_some_and(|all| all.contains(letter)),
                "{kind:?}: {said:?}"
            );
        }
    }

    #[test]
    fn kinds_that_linger_have_a_script_for_it() {
        for kind in kinds() {
            assert_eq!(linger(&kind).is_some(), kind.can_linger(), "{kind:?}");
        }
    }

    #[test]
    fn every_script_says_what_it_takes_and_answers() {
        for script in all() {
            for word in ["KEYS ", "ARGV ", "Reply "] {
                assert!(
                    script.source.contains(word),
                    "{} lacks {word:?} in a header",
                    script.name
                );
            }
            assert!(
                script.source.starts_with("#!lua"),
                "{} lacks its first line",
                script.name
            );
            assert_eq!(script.source.matches("#!").count(), 1, "{}", script.name);
            assert_eq!(script.digest().len(), 40);
        }
    }

    #[test]
    fn each_has_the_place_of_its_like() {
        assert_eq!(QUARANTINED_KINDS.len(), KINDS.len());
        for (guarded, usual) in QUARANTINED_KINDS.iter().zip(KINDS) {
            assert_eq!(
                guarded.acquire.name,
                format!("quarantined_{}", usual.acquire.name)
            );
            assert_eq!(guarded.extend.source, usual.extend.source, "not held back");
            assert_eq!(
                guarded.inspect.source, usual.inspect.source,
                "not held back"
            );
        }
    }
}
