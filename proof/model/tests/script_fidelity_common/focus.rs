//! The script that is called most, and the operation that calls it.

use std::sync::Arc;

use locktopus_core::{LockKind, MutexProfile};
use locktopus_model::Rng;

/// The operation that is called most, and the mode.
#[derive(Debug, Clone)]
pub(crate) struct Focus {
    pub(crate) mode: Mode,
    pub(crate) kind: LockKind,
    pub(crate) asked: Asked,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Plain,
    Quarantine,
    Replicated,
    Cluster,
}

pub(super) const MODES: [Mode; 4] = [
    Mode::Plain,
    Mode::Quarantine,
    Mode::Replicated,
    Mode::Cluster,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    Attempt,
    Release,
    Linger,
    Extend,
    Inspect,
    Evict,
    Count,
    Group,
    /// Several attempts at once, of which the client sends some together.
    Crowd,
    Write,
    List,
}

pub(super) fn kind_named(word: &str) -> LockKind {
    match word {
        "mutex" => LockKind::Mutex(Arc::default()),
        "notifying_mutex" => LockKind::Mutex(Arc::new(MutexProfile::python_redis_lock())),
        "spring_mutex" => LockKind::Mutex(Arc::new(MutexProfile::spring("app").unwrap())),
        "fair_lock" => LockKind::Fair,
        "read_lock" => LockKind::Read,
        "write_lock" => LockKind::Write,
        "semaphore" => LockKind::Semaphore,
        "permits" | "permit_semaphore" => LockKind::PermitSemaphore,
        "rate" | "rate_limiter" => LockKind::RateLimiter,
        "latch" => LockKind::Latch,
        _ => LockKind::Reentrant,
    }
}

pub(super) const KINDS: [&str; 11] = [
    "lock",
    "mutex",
    "notifying_mutex",
    "spring_mutex",
    "fair_lock",
    "read_lock",
    "write_lock",
    "semaphore",
    "permits",
    "rate_limiter",
    "latch",
];

pub(super) fn any_kind(rng: &mut Rng) -> LockKind {
    let word: &str = rng.pick::<&str>(&KINDS);
    kind_named(word)
}

impl Focus {
    /// The operation that calls the script with this name.
    pub(crate) fn on(script: &str, rng: &mut Rng) -> Self {
        let (quarantined, name) = match script.strip_prefix("quarantined_") {
            Some(name) => (true, name),
            None => (false, script),
        };
        let (kind, word) = name.rsplit_once('_').unwrap_or((name, ""));
        let any = || kind_named(KINDS[0]);
        let (kind, asked) = match (kind, word) {
            ("group", _) => (any(), Asked::Group),
            (_, "together") => (any(), Asked::Crowd),
            ("guarded", _) => (any(), Asked::Write),
            ("classify", _) => (any_kind(rng), Asked::List),
            ("keep", _) => (any_kind(rng), Asked::Extend),
            ("wait", _) => (any_kind(rng), Asked::Attempt),
            // With a list, and with a channel.
            ("notifying_mutex", _) if rng.permille(500) => {
                return Self::on(&script.replace("notifying", "spring"), rng);
            }
            (kind, "acquire") => (kind_named(kind), Asked::Attempt),
            (kind, "release") => (kind_named(kind), Asked::Release),
            (kind, "linger") => (kind_named(kind), Asked::Linger),
            (kind, "extend") => (kind_named(kind), Asked::Extend),
            (kind, "inspect") => (kind_named(kind), Asked::Inspect),
            (kind, "evict") => (kind_named(kind), Asked::Evict),
            (kind, "counter" | "read" | "") => (kind_named(kind), Asked::Count),
            _ => panic!("nobody knows who calls {script}"),
        };
        let mode = if quarantined {
            Mode::Quarantine
        } else if asked == Asked::Crowd {
            Mode::Plain
        } else if name == "wait_offset" {
            Mode::Replicated
        } else {
            *rng.pick(&[
                Mode::Plain,
                Mode::Plain,
                Mode::Plain,
                Mode::Cluster,
                Mode::Replicated,
            ])
        };
        Self { mode, kind, asked }
    }
}
