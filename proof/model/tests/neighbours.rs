//! Waiters of ours and of Redisson's in one fair queue, in random schedules on a modelled server:
//! ours run our scripts, Redisson's run theirs. No waiter that listens and comes when called is
//! overtaken, thrown out or left waiting.
//!
//! `LOCKTOPUS_MODEL_SEED` runs a single schedule.
#![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

#[path = "neighbours_common/mod.rs"]
mod common;

use common::{Change, run};
use locktopus_servers::peers::redisson_scripts as redisson;

const SCHEDULES: u64 = 60;
/// How many schedules may be needed to notice each mutant.
const MUTANT_SCHEDULES: u64 = 400;

/// Former and possible mistakes, as replacements in the scripts of the fair lock.
const MUTANTS: &[(&str, &[Change])] = &[
    (
        "a turn outlasts its time",
        &[
            (
                "if whose ~= owner or before ~= deadline or seen > now_ms or now_ms - since > NEXT_TURN then",
                "if whose ~= owner then",
            ),
            (
                "if seen - since <= TURN and now_ms - seen > TURN and not (arrived and math.floor(arrived / 1000) <= since) then",
                "if false then",
            ),
            (
                "redis.call('HDEL', KEYS[4], '!turn', '?' .. redis.call('HKEYS', KEYS[1])[1])",
                "",
            ),
            ("redis.call('HDEL', KEYS[4], '!turn')", ""),
        ],
    ),
    (
        "a waiter that is deaf again has been so all the time",
        &[
            (
                "if before ~= deadline or since > now_ms then",
                "if false then",
            ),
            ("looks >= DEAF_LOOKS and", ""),
            (
                "'!turn', '?' .. redis.call('HKEYS', KEYS[1])[1])",
                "'!turn')",
            ),
        ],
    ),
    (
        "a waiter that leaves a free lock tells nobody",
        &[("free = fine and code == 0", "free = false")],
    ),
    (
        "a newcomer shortens what others need",
        &[(
            "  redis.call('PEXPIRE', KEYS[4], ttl, 'GT')\n  return false",
            "  redis.call('PEXPIRE', KEYS[4], ttl)\n  return false",
        )],
    ),
    (
        "a newcomer leaves the records to expire",
        &[(
            "redis.call('PEXPIRE', KEYS[4], math.max(60000, 2 * place), 'GT')",
            "",
        )],
    ),
    (
        "a waiter whose record is lost queues twice",
        &[(
            "local ahead = not aside and (not new or known ~= 0) and",
            "local ahead = not new and",
        )],
    ),
];

fn first_failure(schedules: u64, changes: &[Change]) -> Option<(u64, String)> {
    let seed = std::env::var("LOCKTOPUS_MODEL_SEED").ok();
    let seeds = match seed.and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..schedules,
    };
    for seed in seeds {
        if let Err(what) = run(seed, changes) {
            return Some((seed, what));
        }
    }
    None
}

#[test]
fn nobody_is_wronged() {
    if let Some((seed, what)) = first_failure(SCHEDULES, &[]) {
        panic!("seed {seed}: {what}");
    }
}

#[test]
fn every_mutant_is_noticed() {
    let mut survivors = Vec::new();
    for (name, changes) in MUTANTS {
        match first_failure(MUTANT_SCHEDULES, changes) {
            Some((seed, what)) => {
                println!(
                    "{name}: seed {seed}: {}",
                    what.lines().last().unwrap_or_default()
                );
            }
            None => survivors.push(name),
        }
    }
    assert!(survivors.is_empty(), "not noticed: {survivors:#?}");
}
