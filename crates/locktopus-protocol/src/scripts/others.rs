//! The scripts that belong to no kind of lock: numbers inside objects, several locks at once, and what is no lock.

use super::script::{Script, granting_script, script};

granting_script! {
    /// Changes the number of a semaphore without ids.
    SEMAPHORE_COUNTER, QUARANTINED_SEMAPHORE_COUNTER, "semaphore_counter", "local publish, keep, channel = ARGV[3], ARGV[6], ARGV[4]",
    before: [
        "part/clock",
        "part/token",
        "part/queue",
        "part/other_kind",
        "part/number",
        "part/hold_semaphore",
        "part/admin_semaphore",
        "part/kind_conflict",
    ],
    quarantine: ["part/quarantine", "part/quarantine_hold", "part/quarantine_queue"],
    after: ["part/queue_of_other_kind", "part/next_waiter", "part/hand_off", "counter"],
}

granting_script! {
    /// Changes the number of a semaphore whose permits have ids.
    PERMITS_COUNTER, QUARANTINED_PERMITS_COUNTER, "permits_counter", "local publish, keep, channel = ARGV[3], ARGV[6], ARGV[4]",
    before: [
        "part/clock",
        "part/token",
        "part/queue",
        "part/other_kind",
        "part/number",
        "part/hold_permits",
        "part/admin_permits",
        "part/kind_conflict",
    ],
    quarantine: ["part/quarantine", "part/quarantine_hold", "part/quarantine_queue"],
    after: ["part/queue_of_other_kind", "part/next_waiter", "part/hand_off", "counter"],
}

/// Changes the count of a latch.
pub static LATCH: Script = script!(
    "latch",
    "#!lua",
    "local publish = ARGV[3]",
    [
        "part/clock",
        "part/other_kind",
        "part/number",
        "part/kind_conflict",
        "latch"
    ]
);

// Reading must go on when memory is full, so it has scripts of its own: a script that may write more is refused then,
// whatever it would have done.

/// Reads the number of a semaphore without ids.
pub static SEMAPHORE_READ: Script = script!(
    "semaphore_read",
    "#!lua flags=allow-oom",
    "local publish, channel = '', ''",
    [
        "part/clock",
        "part/other_kind",
        "part/number",
        "part/hold_semaphore",
        "part/kind_conflict",
        "semaphore_read"
    ]
);

/// Reads the number of a semaphore whose permits have ids.
pub static PERMITS_READ: Script = script!(
    "permits_read",
    "#!lua flags=allow-oom",
    "local publish, channel = '', ''",
    [
        "part/clock",
        "part/other_kind",
        "part/number",
        "part/hold_permits",
        "part/kind_conflict",
        "permits_read"
    ]
);

/// Reads the count of a latch.
pub static LATCH_READ: Script = script!(
    "latch_read",
    "#!lua flags=allow-oom",
    [
        "part/clock",
        "part/other_kind",
        "part/number",
        "part/kind_conflict",
        "latch_read"
    ]
);

granting_script! {
    /// Takes several locks and mutexes at once.
    GROUP_ACQUIRE, QUARANTINED_GROUP_ACQUIRE, "group_acquire", "local all, publish, keep, KEYS = KEYS, ARGV[3], ARGV[1], {}",
    before: [
        "part/clock",
        "part/token",
        "part/queue",
        "part/recall",
        "part/other_kind",
        "part/kind_conflict",
        "part/hold_lock",
        "part/as_lock",
        "part/hold_mutex",
        "part/as_mutex",
    ],
    quarantine: ["part/quarantine", "part/quarantine_group"],
    after: ["part/next_waiter", "group_acquire"],
}

/// Leaves a lock or a fair lock held by nobody for a time.
pub static LOCK_LINGER: Script = script!("lock_linger", "#!lua flags=allow-oom", ["lock_linger"]);

/// Leaves a mutex held by nobody for a time.
pub static MUTEX_LINGER: Script =
    script!("mutex_linger", "#!lua flags=allow-oom", ["mutex_linger"]);

/// Keeps last tokens for longer.
pub static KEEP_TOKENS: Script = script!("keep_tokens", "#!lua flags=allow-oom", ["keep_tokens"]);

/// Writes a value only for those whose fencing token is not stale.
pub static GUARDED_WRITE: Script = script!("guarded_write", "#!lua", ["guarded_write"]);

/// Writes something that does not matter.
pub static WAIT_OFFSET: Script = script!("wait_offset", "#!lua flags=allow-oom", ["wait_offset"]);

/// Says what is kept under several keys.
pub static CLASSIFY: Script = script!("classify", "#!lua flags=allow-oom", ["classify"]);

/// The scripts that belong to no kind or to no lock.
pub static OTHERS: &[&Script] = &[
    &SEMAPHORE_COUNTER,
    &PERMITS_COUNTER,
    &LATCH,
    &SEMAPHORE_READ,
    &PERMITS_READ,
    &LATCH_READ,
    &GROUP_ACQUIRE,
    &LOCK_LINGER,
    &MUTEX_LINGER,
    &KEEP_TOKENS,
    &GUARDED_WRITE,
    &CLASSIFY,
    &WAIT_OFFSET,
];

/// Those of them for `safety=quarantine`.
pub(crate) static QUARANTINED_OTHERS: &[&Script] = &[
    &QUARANTINED_SEMAPHORE_COUNTER,
    &QUARANTINED_PERMITS_COUNTER,
    &QUARANTINED_GROUP_ACQUIRE,
];
