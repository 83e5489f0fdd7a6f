//! The Lua scripts, each with its digest.
//!
//! The code that all kinds of lock share (the queue, the hand-off, tokens) is written once, in
//! `lua/part`. A script is its parts in order: a line that names the arguments that parts need, the
//! parts, and the script's own text.

mod kinds;
mod others;
mod script;

pub use kinds::{
    FAIR, KINDS, KindScripts, LOCK, MUTEX, NOTIFYING_MUTEX, PERMITS, RATE, READ, SEMAPHORE, WRITE,
};
pub use others::{
    CLASSIFY, GROUP_ACQUIRE, GUARDED_WRITE, KEEP_TOKENS, LATCH, LATCH_READ, LOCK_LINGER,
    MUTEX_LINGER, OTHERS, PERMITS_COUNTER, PERMITS_READ, RATE_COUNTER, RATE_READ,
    SEMAPHORE_COUNTER, SEMAPHORE_READ, WAIT_OFFSET,
};
pub use script::Script;

use kinds::QUARANTINED_KINDS;
pub(crate) use kinds::{
    QUARANTINED_FAIR, QUARANTINED_LOCK, QUARANTINED_MUTEX, QUARANTINED_NOTIFYING_MUTEX,
    QUARANTINED_PERMITS, QUARANTINED_RATE, QUARANTINED_READ, QUARANTINED_SEMAPHORE,
    QUARANTINED_WRITE,
};
use others::{NUMBERS, QUARANTINED_NUMBERS};
pub(crate) use others::{
    QUARANTINED_GROUP_ACQUIRE, QUARANTINED_PERMITS_COUNTER, QUARANTINED_RATE_COUNTER,
    QUARANTINED_SEMAPHORE_COUNTER,
};

/// Every script, and one batch ([`Script::together`]): all of them are built the same way.
pub fn all() -> impl Iterator<Item = &'static Script> {
    let kinds = KINDS.iter().chain(QUARANTINED_KINDS);
    let numbers = NUMBERS.iter().chain(QUARANTINED_NUMBERS);
    let others = OTHERS.iter().copied().chain([&QUARANTINED_GROUP_ACQUIRE]);
    kinds
        .flat_map(|kind| kind.all())
        .chain(numbers.copied())
        .chain(others)
        .chain([LOCK.acquire.together()])
}

#[cfg(test)]
mod tests {
    use super::*;

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
