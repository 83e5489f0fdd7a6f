//! Selects the cases that run a changed script: with a mutant, only these say anything.

use locktopus_core::{LockKind, SafetyMode};
use locktopus_model::lua::concerns;
use locktopus_protocol::scripts;

use super::{Op, State, is_counted};

/// Whether nothing is replaced, so all cases run.
pub(crate) fn is_whole() -> bool {
    concerns("")
}

/// Whether a case runs a changed script, in the operation or on the way to its state.
pub(crate) fn is_about(kind: &LockKind, safety: SafetyMode, state: State, op: Op) -> bool {
    let plain = SafetyMode::Plain;
    let arranged = state != State::Free && runs(kind, plain, &["acquire"])
        || is_counted(kind) && runs(kind, plain, &["counter"]);
    let confirmed = matches!(safety, SafetyMode::Replicated { .. });
    arranged || runs(kind, safety, words(op)) || confirmed && runs(kind, plain, &["wait_offset"])
}

/// The endings of the names of the scripts that the operation may run.
fn words(op: Op) -> &'static [&'static str] {
    match op {
        Op::Attempt | Op::Queue => &["acquire", "release"],
        Op::Release => &["release"],
        Op::Leave => &["linger", "release"],
        Op::Extend => &["extend", "keep_tokens"],
        Op::Inspect => &["inspect"],
        Op::Evict => &["evict"],
        Op::Group => &["group_acquire", "release"],
        Op::Count(_) => &["counter", "read"],
    }
}

fn runs(kind: &LockKind, safety: SafetyMode, words: &[&str]) -> bool {
    let quarantine = matches!(safety, SafetyMode::Quarantine { .. });
    scripts::all().any(|script| {
        let (held_back, name) = match script.name.strip_prefix("quarantined_") {
            Some(name) => (true, name),
            None => (false, script.name),
        };
        let ours = words.iter().any(|word| {
            // Several kinds share these scripts.
            let shared = matches!(
                *word,
                "linger" | "extend" | "keep_tokens" | "group_acquire" | "wait_offset"
            );
            let kinds = named(kind).iter();
            let own = || { kinds }.any(|kind| name == format!("{kind}_{word}"));
            name.ends_with(word) && (shared || own())
        });
        ours && (quarantine || !held_back) && concerns(script.source)
    })
}

/// The beginnings of the names of a kind's scripts.
fn named(kind: &LockKind) -> &'static [&'static str] {
    match kind {
        LockKind::Reentrant => &["lock"],
        LockKind::Mutex(profile) if profile.is_native() => &["mutex"],
        LockKind::Mutex(_) => &["notifying_mutex"],
        LockKind::Fair => &["fair_lock"],
        LockKind::Read => &["read_lock"],
        LockKind::Write => &["write_lock"],
        LockKind::Semaphore => &["semaphore"],
        LockKind::PermitSemaphore => &["permit_semaphore", "permits"],
        other => panic!("{other:?} has no scripts here"),
    }
}

#[test]
fn every_case_is_about_a_script_that_there_is() {
    for kind in super::kinds() {
        for op in Op::ALL.into_iter().filter(|op| op.is_for(&kind)) {
            assert!(
                is_about(&kind, SafetyMode::Plain, State::Free, op),
                "{kind:?} {op:?}"
            );
            for word in words(op) {
                assert!(
                    runs(&kind, SafetyMode::Plain, &[word]) || *word == "linger",
                    "{kind:?} {op:?} {word}"
                );
            }
        }
    }
}
