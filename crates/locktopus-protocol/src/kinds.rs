//! What this crate knows about each kind of lock: one row per kind, and the names of its keys.

pub(crate) mod keys;

use locktopus_contract::{LockKind, Mode};

use crate::layout::tag::{prefix_name, tag};
use crate::scripts::{
    FAIR, KindScripts, LATCH, LATCH_READ, LOCK, LOCK_LINGER, MUTEX, MUTEX_LINGER, NOTIFYING_MUTEX,
    PERMITS, PERMITS_COUNTER, PERMITS_READ, QUARANTINED_FAIR, QUARANTINED_LOCK, QUARANTINED_MUTEX,
    QUARANTINED_NOTIFYING_MUTEX, QUARANTINED_PERMITS, QUARANTINED_PERMITS_COUNTER,
    QUARANTINED_RATE, QUARANTINED_RATE_COUNTER, QUARANTINED_READ, QUARANTINED_SEMAPHORE,
    QUARANTINED_SEMAPHORE_COUNTER, QUARANTINED_WRITE, RATE, RATE_COUNTER, RATE_READ, READ,
    SEMAPHORE, SEMAPHORE_COUNTER, SEMAPHORE_READ, Script, WRITE,
};

/// How a kind of lock is kept on Redis.
#[derive(Debug)]
pub(crate) struct RedisKind {
    pub(crate) scripts: Option<HeldBy>,
    /// The channel that announces releases. For a mutex, its profile says whether there is one.
    channel: fn(&str) -> String,
    /// The key besides the lock, its token, its queue and its waiters.
    further: Option<fn(&str) -> String>,
    extended_by: Names,
    /// The script that leaves the lock held without an owner, ready to be taken again.
    pub(crate) linger: Option<&'static Script>,
    /// The number inside.
    pub(crate) counter: Option<Counter>,
    /// The letter of this kind in the script that takes several locks at once.
    pub(crate) in_groups: Option<&'static [u8]>,
    /// The hold is in the first key alone, so it can be released even while its slot migrates.
    pub(crate) is_one_key: bool,
    /// An attempt may have to announce something to clients of other libraries.
    pub(crate) attempts_announce: bool,
    /// Redisson wakes each waiter on a channel of its own.
    pub(crate) wakes_by_name: bool,
}

impl RedisKind {
    /// Whether it opens for everyone at once.
    pub(crate) fn opens(&self) -> bool {
        let counter = self.counter.as_ref();
        counter.is_some_and(|counter| counter.counts == Counts::Down)
    }
}

/// The scripts of a kind that can be held.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeldBy {
    /// The letter that tells scripts the kind of the lock and the wanted mode.
    pub(crate) letter: &'static [u8],
    /// The letter that `classify` returns for it.
    found_as: u8,
    /// A number below 15. Kinds with the same number are extended together.
    batch: u32,
    pub(crate) plain: &'static KindScripts,
    pub(crate) quarantined: &'static KindScripts,
}

/// The keys that the script extending a kind receives for each hold.
#[derive(Debug, Clone, Copy)]
enum Names {
    Lock,
    /// The lock, and the expiry of this reader.
    LockAndReader,
    /// Only the further key.
    Further,
}

/// The scripts of the number inside a kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counter {
    pub(crate) plain: &'static Script,
    pub(crate) quarantined: &'static Script,
    pub(crate) read: &'static Script,
    pub(crate) counts: Counts,
}

/// The meaning of the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counts {
    /// Free permits.
    Permits,
    /// Free permits, which come back after a period.
    Rate,
    /// Outstanding work. Tasks wait for zero; it grants nothing.
    Down,
}

const fn held(
    letters: [&'static [u8; 1]; 2],
    batch: u32,
    plain: &'static KindScripts,
    quarantined: &'static KindScripts,
) -> Option<HeldBy> {
    let [letter, [found_as]] = letters;
    Some(HeldBy {
        letter,
        found_as: *found_as,
        batch,
        plain,
        quarantined,
    })
}

static LATCHES: RedisKind = RedisKind {
    scripts: None,
    // Redisson always adds the braces here.
    channel: |name| format!("redisson_countdownlatch__channel__{{{name}}}"),
    further: None,
    extended_by: Names::Lock,
    linger: None,
    counter: Some(Counter {
        plain: &LATCH,
        quarantined: &LATCH,
        read: &LATCH_READ,
        counts: Counts::Down,
    }),
    in_groups: None,
    is_one_key: false,
    attempts_announce: false,
    wakes_by_name: false,
};
static LOCKS: RedisKind = RedisKind {
    scripts: held([b"x", b"l"], 0, &LOCK, &QUARANTINED_LOCK),
    channel: |name| prefix_name("redisson_lock__channel", name),
    linger: Some(&LOCK_LINGER),
    counter: None,
    in_groups: Some(b"l"),
    is_one_key: true,
    ..LATCHES
};
static MUTEXES: RedisKind = RedisKind {
    scripts: held([b"m", b"m"], 1, &MUTEX, &QUARANTINED_MUTEX),
    channel: |name| prefix_name("locktopus_mutex__channel", name),
    linger: Some(&MUTEX_LINGER),
    in_groups: Some(b"m"),
    ..LOCKS
};
/// Mutexes shared with a library that wakes its waiters. The same script extends all mutexes.
static NOTIFYING_MUTEXES: RedisKind = RedisKind {
    scripts: held(
        [b"m", b"m"],
        1,
        &NOTIFYING_MUTEX,
        &QUARANTINED_NOTIFYING_MUTEX,
    ),
    ..MUTEXES
};
static FAIR_LOCKS: RedisKind = RedisKind {
    scripts: held([b"f", b"f"], 3, &FAIR, &QUARANTINED_FAIR),
    further: Some(|name| prefix_name("redisson_lock_timeout", name)),
    in_groups: None,
    is_one_key: false,
    attempts_announce: true,
    wakes_by_name: true,
    ..LOCKS
};
static WRITES: RedisKind = RedisKind {
    scripts: held([b"w", b"w"], 5, &WRITE, &QUARANTINED_WRITE),
    channel: |name| prefix_name("redisson_rwlock", name),
    // The prefix of the keys that hold readers' expiries.
    further: Some(|name| tag(name).into_owned()),
    counter: None,
    ..LATCHES
};
static READS: RedisKind = RedisKind {
    scripts: held([b"r", b"r"], 4, &READ, &QUARANTINED_READ),
    extended_by: Names::LockAndReader,
    ..WRITES
};
static SEMAPHORES: RedisKind = RedisKind {
    scripts: held([b"s", b"s"], 6, &SEMAPHORE, &QUARANTINED_SEMAPHORE),
    channel: |name| prefix_name("redisson_sc", name),
    further: Some(|name| prefix_name("locktopus_holders", name)),
    extended_by: Names::Further,
    counter: Some(Counter {
        plain: &SEMAPHORE_COUNTER,
        quarantined: &QUARANTINED_SEMAPHORE_COUNTER,
        read: &SEMAPHORE_READ,
        counts: Counts::Permits,
    }),
    attempts_announce: true,
    ..LATCHES
};
/// Laid out like the semaphore.
static RATE_LIMITERS: RedisKind = RedisKind {
    scripts: held([b"t", b"t"], 6, &RATE, &QUARANTINED_RATE),
    counter: Some(Counter {
        plain: &RATE_COUNTER,
        quarantined: &QUARANTINED_RATE_COUNTER,
        read: &RATE_READ,
        counts: Counts::Rate,
    }),
    attempts_announce: false,
    ..SEMAPHORES
};
static PERMIT_SEMAPHORES: RedisKind = RedisKind {
    scripts: held([b"p", b"p"], 7, &PERMITS, &QUARANTINED_PERMITS),
    further: Some(|name| format!("{}:timeout", tag(name))),
    counter: Some(Counter {
        plain: &PERMITS_COUNTER,
        quarantined: &QUARANTINED_PERMITS_COUNTER,
        read: &PERMITS_READ,
        counts: Counts::Permits,
    }),
    ..SEMAPHORES
};

/// The row of a kind, or `None` if this crate does not know the kind.
pub(crate) fn of(kind: &LockKind) -> Option<&'static RedisKind> {
    Some(match kind {
        LockKind::Reentrant => &LOCKS,
        LockKind::Mutex(profile) if profile.notifies() => &NOTIFYING_MUTEXES,
        LockKind::Mutex(_) => &MUTEXES,
        LockKind::Fair => &FAIR_LOCKS,
        LockKind::Read => &READS,
        LockKind::Write => &WRITES,
        LockKind::Semaphore => &SEMAPHORES,
        LockKind::PermitSemaphore => &PERMIT_SEMAPHORES,
        LockKind::RateLimiter => &RATE_LIMITERS,
        LockKind::Latch => &LATCHES,
        _ => return None,
    })
}

/// The mode that scripts know by this letter.
pub(crate) fn mode(letter: &[u8]) -> Option<Mode> {
    let known = |kind: &LockKind| of(kind)?.scripts.as_ref().map(|held| held.letter);
    let mut kinds = LockKind::all().into_iter();
    kinds
        .find(|kind| known(kind) == Some(letter))
        .map(|kind| kind.mode())
}

/// The kind that `classify` knows by this letter.
pub(crate) fn found_as(letter: u8) -> Option<LockKind> {
    let found = |kind: &LockKind| of(kind)?.scripts.as_ref().map(|held| held.found_as);
    LockKind::all()
        .into_iter()
        .find(|kind| found(kind) == Some(letter))
}

/// A number below 16. One script extends the holds of all kinds with the same number. Kinds without
/// scripts have a number of their own, so that a batch of them is refused instead of run by another
/// kind's script.
pub(crate) fn batch(kind: &LockKind) -> u32 {
    let held = of(kind).and_then(|row| row.scripts.as_ref());
    held.map_or(15, |held| held.batch)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use locktopus_contract::MutexProfile;

    use super::*;
    use crate::scripts::KINDS;

    /// Every kind that has scripts, and both sorts of mutexes.
    fn kinds() -> Vec<LockKind> {
        let notifying = LockKind::Mutex(Arc::new(MutexProfile::python_redis_lock()));
        let held = LockKind::all()
            .into_iter()
            .filter(|kind| *kind != LockKind::Latch);
        held.chain([notifying]).collect()
    }

    fn held_by(kind: &LockKind) -> &'static HeldBy {
        of(kind).unwrap().scripts.as_ref().unwrap()
    }

    #[test]
    fn every_script_of_a_kind_belongs_to_one() {
        for ours in KINDS {
            let owners = kinds()
                .into_iter()
                .filter(|kind| std::ptr::eq(held_by(kind).plain, *ours));
            assert_eq!(owners.count(), 1, "{}", ours.acquire.name);
        }
    }

    #[test]
    fn each_kind_is_found_by_its_letter() {
        for kind in kinds() {
            let found = found_as(held_by(&kind).found_as).unwrap();
            assert_eq!(found.as_str(), kind.as_str());
        }
        assert_eq!(found_as(b'?'), None);
    }

    #[test]
    fn kinds_of_one_batch_have_one_script() {
        for one in kinds() {
            assert!(batch(&one) < 16, "{one:?}");
            for other in kinds().iter().filter(|other| batch(other) == batch(&one)) {
                let [script, same] = [&one, other].map(|kind| held_by(kind).plain.extend.source);
                assert_eq!(script, same, "{one:?}, {other:?}");
            }
        }
    }

    /// A latch stands for all kinds without scripts, including kinds that this crate does not know.
    #[test]
    fn a_kind_without_scripts_is_taken_for_no_other() {
        let without = LockKind::Latch;
        assert!(of(&without).unwrap().scripts.is_none());
        assert!(batch(&without) < 16);
        for kind in kinds() {
            assert_ne!(batch(&without), batch(&kind), "{kind:?}");
        }
    }

    #[test]
    fn each_kind_has_the_letter_that_its_scripts_know() {
        for kind in kinds() {
            let letter = std::str::from_utf8(held_by(&kind).letter).unwrap();
            let source = held_by(&kind).plain.acquire.source;
            // The last such line counts, because the fair lock overrides what the lock says.
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
            assert_eq!(
                of(&kind).unwrap().linger.is_some(),
                kind.can_linger(),
                "{kind:?}"
            );
        }
    }
}
