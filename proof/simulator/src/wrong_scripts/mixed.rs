//! Mistakes that show only if others use the name as another kind, or lose a number.

use super::WrongScript;
use super::wrong::mixed;
use locktopus_model::layout::Kind;

pub(super) const PATCHES: &[WrongScript] = &[
    mixed(
        "a read-write lock is taken on a lock that is held",
        Kind::Lock,
        "read_lock_acquire",
        "return nil, wrong_type(now_in) or redis.call('EXISTS', KEYS[1]) == 1",
        "return nil, wrong_type(now_in)",
    ),
    mixed(
        // Both halves of a read-write lock share this text.
        "a held lock is evicted as another kind of lock",
        Kind::Fair,
        "_lock_evict",
        "if other() then\n  return kind_conflict(KEYS[6])\nend",
        "",
    ),
    mixed(
        "a fair lock waits for a lock",
        Kind::Lock,
        "fair_lock_acquire",
        "return not native(holder) or string.byte(holder, -1) % 2 == parity",
        "return true",
    ),
    mixed(
        "a read-write lock that is held is shown as a lock",
        Kind::ReadWrite,
        "fair_lock_inspect",
        "if other() then\n  return kind_conflict(KEYS[6])\nend",
        "",
    ),
    mixed(
        "a number is given to a mutex that is held",
        Kind::Mutex,
        "semaphore_counter",
        "if other() then\n  return kind_conflict(KEYS[6])\nend",
        "",
    ),
    mixed(
        "a latch is set on a mutex that is held",
        Kind::Mutex,
        "latch",
        "if counted_as('latch', KEYS[2], KEYS[3], KEYS[4]) == 'other' then\n  return kind_conflict(KEYS[2])\nend",
        "",
    ),
    mixed(
        "a mutex waits for a semaphore",
        Kind::Semaphore,
        "mutex_acquire",
        "remaining == -1 and #value < 18",
        "false and #value < 18",
    ),
    mixed(
        "permits with ids are taken from a semaphore",
        Kind::Semaphore,
        "permit_semaphore_acquire",
        "return word == kind and 'ours' or 'other'",
        "return 'ours'",
    ),
    mixed(
        "the kind of a number is not read",
        Kind::Permits,
        "semaphore_counter",
        "local said = value and redis.call('GET', kind_key)",
        "local said",
    ),
    mixed(
        "a number that is lost is given anew as if nobody held permits",
        Kind::Semaphore,
        "semaphore_counter",
        "after, all, drained = number - held(), number,",
        "after, all, drained = number, number,",
    ),
    mixed(
        "permits with ids that are held count as free in a new number",
        Kind::Permits,
        "permits_counter",
        "after, all, drained = number - held(), number,",
        "after, all, drained = number, number,",
    ),
];
