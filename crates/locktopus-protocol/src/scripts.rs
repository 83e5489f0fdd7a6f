//! The Lua scripts, each with its digest.
//!
//! What every kind of lock does the same way (the queue, the hand-off, tokens) is written once, in `lua/part`. A script
//! is its parts in order: the arguments that parts need, the parts, and the script's own text.

use std::sync::LazyLock;

use locktopus_core::LockKind;

use crate::quarantine_scripts as quarantined;

/// A script and the digest by which servers know it.
#[derive(Debug)]
pub struct Script {
    /// What it does, for errors: `lock_acquire`.
    pub name: &'static str,
    /// The text, as sent by `EVAL`.
    pub source: &'static str,
    pub(crate) digest: LazyLock<String>,
}

impl Script {
    /// The SHA-1 digest in lower-case hex, as sent by `EVALSHA`.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

macro_rules! script {
    ($name:expr, $first:literal, $(head $head:literal,)? $($args:literal,)? [$($file:literal),+ $(,)?]) => {{
        const SOURCE: &str = concat!(
            $first,
            "\n",
            $(include_str!(concat!("../lua/", $head, ".lua")),)?
            $($args, "\n",)?
            $(include_str!(concat!("../lua/", $file, ".lua"))),+
        );
        $crate::scripts::Script {
            name: $name,
            source: SOURCE,
            digest: std::sync::LazyLock::new(|| sha1_smol::Sha1::from(SOURCE).digest().to_string()),
        }
    }};
}

/// The scripts of one kind of lock.
#[derive(Debug)]
pub struct KindScripts {
    /// Takes it, or a place in its queue.
    pub acquire: Script,
    /// Gives it back, or gives up a place.
    pub release: Script,
    /// Extends several.
    pub extend: Script,
    /// Reads its state.
    pub inspect: Script,
    /// Ends every hold of it.
    pub evict: Script,
}

impl KindScripts {
    fn all(&self) -> [&Script; 5] {
        [
            &self.acquire,
            &self.release,
            &self.extend,
            &self.inspect,
            &self.evict,
        ]
    }
}

// `first` is the line by which a server knows a script's flags. Releasing, extending and looking must go on when memory
// is full. Without such a line, a demoted primary would answer from its stale data until the first write.
macro_rules! kind {
    (
        $kind:literal,
        $(count: $count:literal,)?
        hold: $hold:literal,
        admin: $admin:literal,
        enter: $enter:literal,
        queue: $queue:literal,
        admin_queue: $admin_queue:literal,
        extend: $extend:literal
        $(, also: $also:literal)?
        , recall: $recall:literal
        $(, free: $free:literal, pass: $pass:literal)?,
        released: $released:literal
        $(, head: $head:literal, guard: [$($guard:literal),+], guard_queue: $guard_queue:literal)?
    ) => {
        $crate::scripts::KindScripts {
            acquire: script!(
                concat!($kind, "_acquire"),
                "#!lua",
                $(head $head,)?
                "local publish, keep, channel = ARGV[9], ARGV[3], ARGV[12]",
                [
                    "part/now",
                    $("part/usual_free", "part/usual_token", $free,)?
                    "part/other_kind",
                    $($count,)?
                    $hold,
                    $($also,)?
                    $($($guard,)+)?
                    $recall,
                    $enter,
                    "part/misplaced",
                    "part/join",
                    "part/token",
                    $queue,
                    $($guard_queue,)?
                    "part/strangers",
                    "part/hand_on",
                    "acquire",
                ]
            ),
            release: script!(
                concat!($kind, "_release"),
                "#!lua flags=allow-oom",
                $(head $head,)?
                "local publish, keep, channel = ARGV[4], ARGV[6], ARGV[5]",
                [
                    $released,
                    "part/clock",
                    $("part/usual_heir", "part/usual_token", $pass, "part/pass_on",)?
                    "part/token",
                    "part/other_kind",
                    $($count,)?
                    $hold,
                    $($also,)?
                    $($($guard,)+)?
                    $queue,
                    $($guard_queue,)?
                    $recall,
                    "part/hand_on",
                    "release",
                ]
            ),
            extend: script!(concat!($kind, "_extend"), "#!lua flags=allow-oom", [$extend]),
            inspect: script!(
                concat!($kind, "_inspect"),
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
                    "part/misplaced",
                    "inspect",
                ]
            ),
            evict: script!(
                concat!($kind, "_evict"),
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
                    "part/misplaced",
                    $queue,
                    $admin,
                    $($($guard,)+ $guard_queue,)?
                    $recall,
                    "part/hand_on",
                    "evict",
                ]
            ),
        }
    };
}

pub(crate) use {kind, script};

/// The reentrant lock: a hash with one field, as Redisson's `RLock`.
pub static LOCK: KindScripts = kind!(
    "lock",
    hold: "part/hold_lock",
    admin: "part/admin_lock",
    enter: "part/enter",
    queue: "part/queue",
    admin_queue: "part/admin_queue",
    extend: "lock_extend",
    recall: "part/recall",
    free: "part/free_lock",
    pass: "part/pass_lock",
    released: "part/released_lock"
);

/// The mutex: one plain string.
pub static MUTEX: KindScripts = kind!(
    "mutex",
    hold: "part/hold_mutex",
    admin: "part/admin_mutex",
    enter: "part/enter",
    queue: "part/queue",
    admin_queue: "part/admin_queue",
    extend: "mutex_extend",
    recall: "part/recall",
    free: "part/free_mutex",
    pass: "part/pass_mutex",
    released: "part/released_mutex"
);

/// The mutex that is shared with a library whose waiters are woken.
pub static BELL_MUTEX: KindScripts = kind!(
    "bell_mutex",
    hold: "part/hold_mutex",
    admin: "part/admin_mutex",
    enter: "part/enter",
    queue: "part/queue",
    admin_queue: "part/admin_queue",
    extend: "mutex_extend",
    also: "part/hold_bell",
    recall: "part/no_recall",
    released: "part/no_haste"
);

/// The fair lock: the reentrant lock with Redisson's queue.
pub static FAIR: KindScripts = kind!(
    "fair_lock",
    hold: "part/hold_lock",
    admin: "part/admin_lock",
    enter: "part/enter_fair",
    queue: "part/queue_fair",
    admin_queue: "part/admin_queue_fair",
    extend: "lock_extend",
    also: "part/hold_fair",
    recall: "part/no_recall",
    released: "part/no_haste"
);

/// The shared half of the read-write lock.
pub static READ: KindScripts = kind!(
    "read_lock",
    hold: "part/hold_rw",
    admin: "part/admin_rw",
    enter: "part/enter",
    queue: "part/queue",
    admin_queue: "part/admin_queue",
    extend: "read_extend",
    recall: "part/no_recall",
    released: "part/no_haste"
);

/// The exclusive half of the read-write lock. All but extending is the same text, so a server knows it once.
pub static WRITE: KindScripts = kind!(
    "write_lock",
    hold: "part/hold_rw",
    admin: "part/admin_rw",
    enter: "part/enter",
    queue: "part/queue",
    admin_queue: "part/admin_queue",
    extend: "write_extend",
    recall: "part/no_recall",
    released: "part/no_haste"
);

/// The semaphore without ids.
pub static SEMAPHORE: KindScripts = kind!(
    "semaphore",
    count: "part/number",
    hold: "part/hold_semaphore",
    admin: "part/admin_semaphore",
    enter: "part/enter",
    queue: "part/queue",
    admin_queue: "part/admin_queue",
    extend: "semaphore_extend",
    recall: "part/no_recall",
    released: "part/no_haste"
);

/// The semaphore whose permits have ids and expire.
pub static PERMITS: KindScripts = kind!(
    "permit_semaphore",
    count: "part/number",
    hold: "part/hold_permits",
    admin: "part/admin_permits",
    enter: "part/enter",
    queue: "part/queue",
    admin_queue: "part/admin_queue",
    extend: "permits_extend",
    recall: "part/no_recall",
    released: "part/no_haste"
);

/// Changes the number of a semaphore without ids.
pub static SEMAPHORE_COUNTER: Script = script!(
    "semaphore_counter",
    "#!lua",
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
        "part/strangers",
        "part/hand_on",
        "counter"
    ]
);

/// Changes the number of a semaphore whose permits have ids.
pub static PERMITS_COUNTER: Script = script!(
    "permits_counter",
    "#!lua",
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
        "part/strangers",
        "part/hand_on",
        "counter"
    ]
);

/// Changes the count of a latch.
pub static LATCH: Script = script!(
    "latch",
    "#!lua",
    "local publish = ARGV[3]",
    [
        "part/clock",
        "part/other_kind",
        "part/number",
        "part/misplaced",
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
        "part/misplaced",
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
        "part/misplaced",
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
        "part/misplaced",
        "latch_read"
    ]
);

/// Takes several locks and mutexes at once.
pub static GROUP_ACQUIRE: Script = script!(
    "group_acquire",
    "#!lua",
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
        "group_acquire",
    ]
);

/// Writes a value only for those whose fencing token is not stale.
pub static GUARDED_WRITE: Script = script!("guarded_write", "#!lua", ["guarded_write"]);

/// Writes something that does not matter.
pub static MARK: Script = script!("mark", "#!lua flags=allow-oom", ["mark"]);

/// Says what is kept under several keys.
pub static CLASSIFY: Script = script!("classify", "#!lua flags=allow-oom", ["classify"]);

/// The scripts of every kind.
pub static KINDS: &[&KindScripts] = &[
    &LOCK,
    &MUTEX,
    &BELL_MUTEX,
    &FAIR,
    &READ,
    &WRITE,
    &SEMAPHORE,
    &PERMITS,
];

/// The scripts that belong to no kind or to no lock.
pub static OTHERS: &[&Script] = &[
    &SEMAPHORE_COUNTER,
    &PERMITS_COUNTER,
    &LATCH,
    &SEMAPHORE_READ,
    &PERMITS_READ,
    &LATCH_READ,
    &GROUP_ACQUIRE,
    &GUARDED_WRITE,
    &CLASSIFY,
    &MARK,
];

/// The scripts of a kind; none if it has none.
pub(crate) fn of(kind: &LockKind) -> Option<&'static KindScripts> {
    position(kind).map(|at| KINDS[at])
}

/// Where the scripts of a kind are among those of all kinds.
pub(crate) fn position(kind: &LockKind) -> Option<usize> {
    match kind {
        LockKind::Reentrant => Some(0),
        LockKind::Mutex(profile) if profile.rings() => Some(2),
        LockKind::Mutex(_) => Some(1),
        LockKind::Fair => Some(3),
        LockKind::Read => Some(4),
        LockKind::Write => Some(5),
        LockKind::Semaphore => Some(6),
        LockKind::Permits => Some(7),
        _ => None,
    }
}

/// A number for each kind that has scripts of its own, below eight.
pub(crate) fn index(kind: &LockKind) -> u32 {
    match kind {
        LockKind::Mutex(_) => 1,
        LockKind::Fair => 2,
        LockKind::Read => 3,
        LockKind::Write => 4,
        LockKind::Semaphore => 5,
        LockKind::Permits => 6,
        _ => 0,
    }
}

/// Every script there is.
pub fn all() -> impl Iterator<Item = &'static Script> {
    let kinds = KINDS.iter().chain(quarantined::KINDS);
    let others = OTHERS.iter().chain(quarantined::OTHERS);
    kinds.flat_map(|kind| kind.all()).chain(others.copied())
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
}
