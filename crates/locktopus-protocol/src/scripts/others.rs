//! The scripts that belong to no kind of lock: counters, several locks at once, and what is not a
//! lock.

use super::script::{Script, granting_script, script};

/// The scripts of a number of permits, which change and read it, and lists of them.
macro_rules! numbers {
    ($(
        $(#[$doc:meta])*
        $counter:ident, $quarantined:ident, $read:ident {
            $name:literal, [$($hold:literal),+], $admin:literal, $answer:literal
        }
    )+) => {
        $(
            granting_script! {
                $(#[$doc])*
                $counter, $quarantined, concat!($name, "_counter"),
                "local publish, keep, channel = ARGV[3], ARGV[6], ARGV[4]",
                before: [
                    "part/clock", "part/token", "part/queue", "part/other_kind", "part/number",
                    $($hold,)+ $admin, "part/kind_conflict",
                ],
                quarantine: ["part/quarantine", "part/quarantine_hold", "part/quarantine_queue"],
                after: ["part/queue_of_other_kind", "part/next_waiter", "part/hand_off", "counter"],
            }

            // Reads must work when memory is full, so they have their own script: the server then
            // refuses any script that may write, even if it would not.
            #[doc = concat!("Reads the number that [`", stringify!($counter), "`] changes.")]
            pub static $read: Script = script!(
                concat!($name, "_read"),
                "#!lua flags=allow-oom",
                "local publish, channel = '', ''",
                ["part/clock", "part/other_kind", "part/number", $($hold,)+ "part/kind_conflict", $answer]
            );
        )+

        /// Every script of a number of permits.
        pub(super) static NUMBERS: &[&Script] = &[$(&$counter, &$read),+];

        /// Those for `safety=quarantine`.
        pub(super) static QUARANTINED_NUMBERS: &[&Script] = &[$(&$quarantined),+];
    };
}

numbers! {
    /// Changes the number of a semaphore without ids.
    SEMAPHORE_COUNTER, QUARANTINED_SEMAPHORE_COUNTER, SEMAPHORE_READ {
        "semaphore", ["part/hold_semaphore"], "part/admin_semaphore", "semaphore_read"
    }

    /// Changes the number of a semaphore whose permits have ids.
    PERMITS_COUNTER, QUARANTINED_PERMITS_COUNTER, PERMITS_READ {
        "permits", ["part/hold_permits"], "part/admin_permits", "permits_read"
    }

    /// Changes the number of permits of a rate limiter, and how long they are away.
    RATE_COUNTER, QUARANTINED_RATE_COUNTER, RATE_READ {
        "rate", ["part/hold_semaphore", "part/hold_rate"], "part/admin_semaphore", "semaphore_read"
    }
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

/// Leaves a lock or a fair lock held without an owner for a time.
pub static LOCK_LINGER: Script = script!("lock_linger", "#!lua flags=allow-oom", ["lock_linger"]);

/// Leaves a mutex held without an owner for a time.
pub static MUTEX_LINGER: Script =
    script!("mutex_linger", "#!lua flags=allow-oom", ["mutex_linger"]);

/// Keeps last fencing tokens for longer.
pub static KEEP_TOKENS: Script = script!("keep_tokens", "#!lua flags=allow-oom", ["keep_tokens"]);

/// Writes a value unless the writer's fencing token is stale.
pub static GUARDED_WRITE: Script = script!("guarded_write", "#!lua", ["guarded_write"]);

/// Makes a write that changes nothing that matters.
pub static WAIT_OFFSET: Script = script!("wait_offset", "#!lua flags=allow-oom", ["wait_offset"]);

/// Says what several keys hold.
pub static CLASSIFY: Script = script!("classify", "#!lua flags=allow-oom", ["classify"]);

/// The scripts of no kind that can be held, and those that concern no lock.
pub static OTHERS: &[&Script] = &[
    &LATCH,
    &LATCH_READ,
    &GROUP_ACQUIRE,
    &LOCK_LINGER,
    &MUTEX_LINGER,
    &KEEP_TOKENS,
    &GUARDED_WRITE,
    &CLASSIFY,
    &WAIT_OFFSET,
];
