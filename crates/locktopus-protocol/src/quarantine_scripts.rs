//! The scripts that grant, for `safety=quarantine`.
//!
//! The same parts as [`scripts`](crate::scripts), with two more: one that takes the further arguments off, and one that
//! holds everything back while a lease may be running of which the server knows nothing. Without the short cuts, which
//! grant before any part could object.

use crate::scripts::{KindScripts, Script, kind, script};

static LOCK: KindScripts = kind!(
    "quarantined_lock",
    hold: "part/hold_lock",
    admin: "part/admin_lock",
    enter: "part/enter",
    queue: "part/queue",
    admin_queue: "part/admin_queue",
    extend: "lock_extend",
    recall: "part/recall",
    released: "part/no_haste",
    head: "part/quarantine_args",
    guard: ["part/quarantine", "part/quarantine_hold"],
    guard_queue: "part/quarantine_queue"
);

static MUTEX: KindScripts = kind!(
    "quarantined_mutex",
    hold: "part/hold_mutex",
    admin: "part/admin_mutex",
    enter: "part/enter",
    queue: "part/queue",
    admin_queue: "part/admin_queue",
    extend: "mutex_extend",
    recall: "part/recall",
    released: "part/no_haste",
    head: "part/quarantine_args",
    guard: ["part/quarantine", "part/quarantine_hold"],
    guard_queue: "part/quarantine_queue"
);

static BELL_MUTEX: KindScripts = kind!(
    "quarantined_bell_mutex",
    hold: "part/hold_mutex",
    admin: "part/admin_mutex",
    enter: "part/enter",
    queue: "part/queue",
    admin_queue: "part/admin_queue",
    extend: "mutex_extend",
    also: "part/hold_bell",
    recall: "part/no_recall",
    released: "part/no_haste",
    head: "part/quarantine_args",
    guard: ["part/quarantine", "part/quarantine_hold"],
    guard_queue: "part/quarantine_queue"
);

static FAIR: KindScripts = kind!(
    "quarantined_fair_lock",
    hold: "part/hold_lock",
    admin: "part/admin_lock",
    enter: "part/enter_fair",
    queue: "part/queue_fair",
    admin_queue: "part/admin_queue_fair",
    extend: "lock_extend",
    also: "part/hold_fair",
    recall: "part/no_recall",
    released: "part/no_haste",
    head: "part/quarantine_args",
    guard: ["part/quarantine", "part/quarantine_hold"],
    guard_queue: "part/quarantine_queue"
);

static READ: KindScripts = kind!(
    "quarantined_read_lock",
    hold: "part/hold_rw",
    admin: "part/admin_rw",
    enter: "part/enter",
    queue: "part/queue",
    admin_queue: "part/admin_queue",
    extend: "read_extend",
    recall: "part/no_recall",
    released: "part/no_haste",
    head: "part/quarantine_args",
    guard: ["part/quarantine", "part/quarantine_hold"],
    guard_queue: "part/quarantine_queue"
);

static WRITE: KindScripts = kind!(
    "quarantined_write_lock",
    hold: "part/hold_rw",
    admin: "part/admin_rw",
    enter: "part/enter",
    queue: "part/queue",
    admin_queue: "part/admin_queue",
    extend: "write_extend",
    recall: "part/no_recall",
    released: "part/no_haste",
    head: "part/quarantine_args",
    guard: ["part/quarantine", "part/quarantine_hold"],
    guard_queue: "part/quarantine_queue"
);

static SEMAPHORE: KindScripts = kind!(
    "quarantined_semaphore",
    count: "part/number",
    hold: "part/hold_semaphore",
    admin: "part/admin_semaphore",
    enter: "part/enter",
    queue: "part/queue",
    admin_queue: "part/admin_queue",
    extend: "semaphore_extend",
    recall: "part/no_recall",
    released: "part/no_haste",
    head: "part/quarantine_args",
    guard: ["part/quarantine", "part/quarantine_hold"],
    guard_queue: "part/quarantine_queue"
);

static PERMITS: KindScripts = kind!(
    "quarantined_permit_semaphore",
    count: "part/number",
    hold: "part/hold_permits",
    admin: "part/admin_permits",
    enter: "part/enter",
    queue: "part/queue",
    admin_queue: "part/admin_queue",
    extend: "permits_extend",
    recall: "part/no_recall",
    released: "part/no_haste",
    head: "part/quarantine_args",
    guard: ["part/quarantine", "part/quarantine_hold"],
    guard_queue: "part/quarantine_queue"
);

/// As [`SEMAPHORE_COUNTER`](crate::scripts::SEMAPHORE_COUNTER).
pub(crate) static SEMAPHORE_COUNTER: Script = script!(
    "quarantined_semaphore_counter",
    "#!lua",
    head "part/quarantine_args",
    "local publish, keep, channel = ARGV[3], ARGV[6], ARGV[4]",
    [
        "part/clock",
        "part/token",
        "part/queue",
        "part/other_kind",
        "part/number",
        "part/hold_semaphore",
        "part/admin_semaphore",
        "part/misplaced",
        "part/quarantine",
        "part/quarantine_hold",
        "part/quarantine_queue",
        "part/strangers",
        "part/hand_on",
        "counter"
    ]
);

/// As [`PERMITS_COUNTER`](crate::scripts::PERMITS_COUNTER).
pub(crate) static PERMITS_COUNTER: Script = script!(
    "quarantined_permits_counter",
    "#!lua",
    head "part/quarantine_args",
    "local publish, keep, channel = ARGV[3], ARGV[6], ARGV[4]",
    [
        "part/clock",
        "part/token",
        "part/queue",
        "part/other_kind",
        "part/number",
        "part/hold_permits",
        "part/admin_permits",
        "part/misplaced",
        "part/quarantine",
        "part/quarantine_hold",
        "part/quarantine_queue",
        "part/strangers",
        "part/hand_on",
        "counter"
    ]
);

/// As [`GROUP_ACQUIRE`](crate::scripts::GROUP_ACQUIRE).
pub(crate) static GROUP_ACQUIRE: Script = script!(
    "quarantined_group_acquire",
    "#!lua",
    head "part/quarantine_args",
    "local all, publish, keep, KEYS = KEYS, ARGV[3], ARGV[1], {}",
    [
        "part/clock",
        "part/token",
        "part/queue",
        "part/recall",
        "part/other_kind",
        "part/misplaced",
        "part/hold_lock",
        "part/as_lock",
        "part/hold_mutex",
        "part/as_mutex",
        "part/quarantine",
        "part/quarantine_group",
        "group_acquire",
    ]
);

/// In the order of [`scripts::KINDS`](crate::scripts::KINDS).
pub(crate) static KINDS: &[&KindScripts] = &[
    &LOCK,
    &MUTEX,
    &BELL_MUTEX,
    &FAIR,
    &READ,
    &WRITE,
    &SEMAPHORE,
    &PERMITS,
];

/// Those that belong to no kind.
pub(crate) static OTHERS: &[&Script] = &[&SEMAPHORE_COUNTER, &PERMITS_COUNTER, &GROUP_ACQUIRE];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripts;

    #[test]
    fn each_has_the_place_of_its_like() {
        assert_eq!(KINDS.len(), scripts::KINDS.len());
        for (guarded, usual) in KINDS.iter().zip(scripts::KINDS) {
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
