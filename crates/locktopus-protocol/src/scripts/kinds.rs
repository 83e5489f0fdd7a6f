//! The scripts of each kind of lock: plain ones, and those for `safety=quarantine`.
//!
//! The latter have the same parts and two more: one takes the additional arguments off, and one
//! grants nothing while an unknown lease may still be running. They have no fast path, which would
//! grant before any part could object.

use super::script::{Script, script};

/// The scripts of one kind of lock.
#[derive(Debug)]
pub struct KindScripts {
    /// Takes the lock, or a place in its queue.
    pub acquire: Script,
    /// Gives the lock back, or leaves the queue.
    pub release: Script,
    /// Extends several leases.
    pub extend: Script,
    /// Reads its state.
    pub inspect: Script,
    /// Ends every hold of the lock.
    pub evict: Script,
}

impl KindScripts {
    pub(super) fn all(&self) -> [&Script; 5] {
        [
            &self.acquire,
            &self.release,
            &self.extend,
            &self.inspect,
            &self.evict,
        ]
    }
}

// The flag in the first line lets a release, an extension and an inspection run when memory is
// full. Without such a line, a demoted primary would answer from its stale data until the first
// write.
/// The scripts of one kind from its parts.
macro_rules! kind_scripts {
    (
        $prefix:literal, $kind:literal,
        $(count: $count:literal,)?
        hold: $hold:literal,
        $(also: $also:literal,)?
        admin: $admin:literal,
        enter: $enter:literal,
        queue: $queue:literal,
        admin_queue: $admin_queue:literal,
        extend: $extend:literal,
        recall: $recall:literal,
        $(take: $take:literal, grant: $grant:literal,)?
        released: $released:literal
        $(, head: $head:literal, guard: [$($guard:literal),+], guard_queue: $guard_queue:literal)?
    ) => {
        KindScripts {
            acquire: script!(
                concat!($prefix, $kind, "_acquire"),
                "#!lua",
                $(head $head,)?
                "local publish, keep, channel = ARGV[9], ARGV[3], ARGV[12]",
                [
                    "part/now",
                    $("part/fast_free", "part/fast_token", $take,)?
                    "part/other_kind",
                    $($count,)?
                    $hold,
                    $($also,)?
                    $($($guard,)+)?
                    $recall,
                    $enter,
                    "part/kind_conflict",
                    "part/wait_if_blocked",
                    "part/token",
                    $queue,
                    $($guard_queue,)?
                    "part/queue_of_other_kind",
                    "part/next_waiter",
                    "part/hand_off",
                    "acquire",
                ]
            ),
            release: script!(
                concat!($prefix, $kind, "_release"),
                "#!lua flags=allow-oom",
                $(head $head,)?
                "local publish, keep, channel = ARGV[4], ARGV[6], ARGV[5]",
                [
                    $released,
                    "part/clock",
                    $("part/fast_head", "part/fast_token", $grant, "part/fast_publish",)?
                    "part/token",
                    "part/other_kind",
                    $($count,)?
                    $hold,
                    $($also,)?
                    $($($guard,)+)?
                    $queue,
                    $($guard_queue,)?
                    $recall,
                    "part/next_waiter",
                    "part/hand_off",
                    "release",
                ]
            ),
            extend: script!(concat!($prefix, $kind, "_extend"), "#!lua flags=allow-oom", [$extend]),
            inspect: script!(
                concat!($prefix, $kind, "_inspect"),
                "#!lua flags=allow-oom",
                "local publish, channel = '', ''",
                [
                    "part/clock",
                    "part/other_kind",
                    $($count,)?
                    $hold,
                    $($also,)?
                    $queue,
                    $admin,
                    $admin_queue,
                    "part/kind_conflict",
                    "inspect",
                ]
            ),
            evict: script!(
                concat!($prefix, $kind, "_evict"),
                "#!lua flags=allow-oom",
                $(head $head,)?
                "local publish, keep, channel = ARGV[1], ARGV[3], ARGV[2]",
                [
                    "part/clock",
                    "part/token",
                    "part/other_kind",
                    $($count,)?
                    $hold,
                    $($also,)?
                    "part/kind_conflict",
                    $queue,
                    $admin,
                    $($($guard,)+ $guard_queue,)?
                    $recall,
                    "part/next_waiter",
                    "part/hand_off",
                    "evict",
                ]
            ),
        }
    };
}

/// The plain and the quarantined scripts of a kind. The fast path follows the semicolon.
macro_rules! kind {
    (
        $(#[$doc:meta])*
        $plain:ident, $quarantined:ident, $kind:literal,
        $($role:ident: $part:literal),+;
        $($fast:ident: $fast_part:literal),+ $(,)?
    ) => {
        $(#[$doc])*
        pub static $plain: KindScripts = kind_scripts!(
            "", $kind,
            $($role: $part,)+
            $($fast: $fast_part),+
        );

        pub(crate) static $quarantined: KindScripts = kind_scripts!(
            "quarantined_", $kind,
            $($role: $part,)+
            released: "part/no_fast_path",
            head: "part/quarantine_args",
            guard: ["part/quarantine", "part/quarantine_hold"],
            guard_queue: "part/quarantine_queue"
        );
    };
}

/// The kinds, and lists of their scripts.
macro_rules! kinds {
    ($($(#[$doc:meta])* $plain:ident, $quarantined:ident { $($parts:tt)+ })+) => {
        $(kind! { $(#[$doc])* $plain, $quarantined, $($parts)+ })+

        /// The scripts of every kind.
        pub static KINDS: &[&KindScripts] = &[$(&$plain),+];

        /// Those for `safety=quarantine`.
        pub(super) static QUARANTINED_KINDS: &[&KindScripts] = &[$(&$quarantined),+];
    };
}

kinds! {
    /// The reentrant lock: a hash with one field, like Redisson's `RLock`.
    LOCK, QUARANTINED_LOCK {
        "lock",
        hold: "part/hold_lock",
        admin: "part/admin_lock",
        enter: "part/enter",
        queue: "part/queue",
        admin_queue: "part/admin_queue",
        extend: "lock_extend",
        recall: "part/recall";
        take: "part/fast_take_lock",
        grant: "part/fast_grant_lock",
        released: "part/fast_release_lock",
    }

    /// The mutex: one plain string.
    MUTEX, QUARANTINED_MUTEX {
        "mutex",
        hold: "part/hold_mutex",
        admin: "part/admin_mutex",
        enter: "part/enter",
        queue: "part/queue",
        admin_queue: "part/admin_queue",
        extend: "mutex_extend",
        recall: "part/recall";
        take: "part/fast_take_mutex",
        grant: "part/fast_grant_mutex",
        released: "part/fast_release_mutex",
    }

    /// The mutex shared with a library that wakes its waiters.
    NOTIFYING_MUTEX, QUARANTINED_NOTIFYING_MUTEX {
        "notifying_mutex",
        hold: "part/hold_mutex",
        also: "part/hold_notify",
        admin: "part/admin_mutex",
        enter: "part/enter",
        queue: "part/queue",
        admin_queue: "part/admin_queue",
        extend: "mutex_extend",
        recall: "part/no_recall";
        released: "part/no_fast_path",
    }

    /// The fair lock: the reentrant lock with Redisson's queue.
    FAIR, QUARANTINED_FAIR {
        "fair_lock",
        hold: "part/hold_lock",
        also: "part/hold_fair",
        admin: "part/admin_lock",
        enter: "part/enter_fair",
        queue: "part/queue_fair",
        admin_queue: "part/admin_queue_fair",
        extend: "lock_extend",
        recall: "part/no_recall";
        released: "part/no_fast_path",
    }

    /// The shared half of the read-write lock.
    READ, QUARANTINED_READ {
        "read_lock",
        hold: "part/hold_rw",
        admin: "part/admin_rw",
        enter: "part/enter",
        queue: "part/queue",
        admin_queue: "part/admin_queue",
        extend: "read_extend",
        recall: "part/no_recall";
        released: "part/no_fast_path",
    }

    /// The exclusive half of the read-write lock. Except for extending, its text is the same, so a
    /// server stores it once.
    WRITE, QUARANTINED_WRITE {
        "write_lock",
        hold: "part/hold_rw",
        admin: "part/admin_rw",
        enter: "part/enter",
        queue: "part/queue",
        admin_queue: "part/admin_queue",
        extend: "write_extend",
        recall: "part/no_recall";
        released: "part/no_fast_path",
    }

    /// The semaphore without ids.
    SEMAPHORE, QUARANTINED_SEMAPHORE {
        "semaphore",
        count: "part/number",
        hold: "part/hold_semaphore",
        admin: "part/admin_semaphore",
        enter: "part/enter",
        queue: "part/queue",
        admin_queue: "part/admin_queue",
        extend: "semaphore_extend",
        recall: "part/no_recall";
        released: "part/no_fast_path",
    }

    /// The rate limiter, laid out like the semaphore.
    RATE, QUARANTINED_RATE {
        "rate_limiter",
        count: "part/number",
        hold: "part/hold_semaphore",
        also: "part/hold_rate",
        admin: "part/admin_semaphore",
        enter: "part/enter",
        queue: "part/queue",
        admin_queue: "part/admin_queue",
        extend: "semaphore_extend",
        recall: "part/no_recall";
        released: "part/no_fast_path",
    }

    /// The semaphore whose permits have ids and expire.
    PERMITS, QUARANTINED_PERMITS {
        "permit_semaphore",
        count: "part/number",
        hold: "part/hold_permits",
        admin: "part/admin_permits",
        enter: "part/enter",
        queue: "part/queue",
        admin_queue: "part/admin_queue",
        extend: "permits_extend",
        recall: "part/no_recall";
        released: "part/no_fast_path",
    }
}
