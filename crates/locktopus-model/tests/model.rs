//! Random schedules of simulated clients on modelled servers: what must not happen, does not.
//!
//! `LOCKTOPUS_MODEL_SCHEDULES` sets the number of schedules of all kinds together; without it each test runs a few. A
//! failure names its seed, and `LOCKTOPUS_MODEL_SEED` runs the schedule of that seed alone. What ran is written to the
//! file `LOCKTOPUS_MODEL_REPORT`, a line `<schedules> <kind>` for each test.
#![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

use std::fs::OpenOptions;
use std::io::Write as _;
use std::ops::Range;
use std::thread::available_parallelism;

use locktopus_model::sim::{Config, Failure, Kind, Model, Summary, mutants};

/// Schedules of each test, if nobody asks for more.
const FEW: u64 = 200;
/// Each kind runs by itself, with others who take it for another kind, and with failovers.
const TESTS: u64 = 3 * Kind::ALL.len() as u64;
/// Schedules in which each mutant must be noticed.
const MUTANT_SCHEDULES: u64 = 12_000;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} is not a number: {text:?}")),
    )
}

fn seeds() -> Range<u64> {
    match number("LOCKTOPUS_MODEL_SEED") {
        Some(seed) => seed..seed + 1,
        None => {
            let all = number("LOCKTOPUS_MODEL_SCHEDULES");
            0..all.map_or(FEW, |all| all.div_ceil(TESTS))
        }
    }
}

fn threads() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// Tells whoever started the tests what ran, as the output of tests that pass is not shown.
fn report(what: &str, schedules: u64) {
    let Some(path) = std::env::var_os("LOCKTOPUS_MODEL_REPORT") else {
        return;
    };
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .unwrap_or_else(|error| panic!("cannot open LOCKTOPUS_MODEL_REPORT {path:?}: {error}"));
    // In one piece: other tests write at the same time.
    file.write_all(format!("{schedules} {what}\n").as_bytes())
        .unwrap();
}

fn run(config: Config) -> Summary {
    let summary = Model::new(config).run_many(seeds(), threads()).unwrap();
    let failovers = if config.failovers { ", failovers" } else { "" };
    let strangers = if config.strangers { ", strangers" } else { "" };
    let what = format!("{:?}{failovers}{strangers}", config.kind);
    println!("{what}: {summary}");
    report(&what, summary.schedules);
    assert!(summary.failure.is_none(), "{what}: {summary}");
    summary
}

macro_rules! kinds {
    ($($name:ident $kind:ident;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn keeps_its_promises() {
                let counts = run(Config::new(Kind::$kind)).counts;
                assert!(counts.grants > 0 && counts.scripts > 0, "{counts:?}: nothing happened");
            }

            #[test]
            fn keeps_apart_from_other_kinds() {
                let counts = run(Config::new(Kind::$kind).with_strangers()).counts;
                assert!(counts.grants > 0 && counts.strange > 0, "{counts:?}: nothing happened");
            }

            #[test]
            fn keeps_what_is_promised_across_failovers() {
                let counts = run(Config::new(Kind::$kind).with_failovers()).counts;
                assert!(counts.grants > 0 && counts.scripts > 0, "{counts:?}: nothing happened");
            }
        }
    )*};
}

kinds! {
    lock Lock;
    mutex Mutex;
    fair_lock Fair;
    rw_lock ReadWrite;
    semaphore Semaphore;
    permit_semaphore Permits;
}

/// A schedule in which nobody keeps a lease says nothing about those that are kept.
#[test]
fn leases_are_kept_and_taken_up_again() {
    for kind in [Kind::Lock, Kind::Mutex] {
        let counts = Model::new(Config::new(kind)).run_many(0..50, threads());
        let counts = counts.unwrap().counts;
        assert!(counts.again > 10, "{kind:?}: {counts:?}");
    }
}

/// A replay that went differently would show something else than what went wrong.
#[test]
fn a_seed_determines_a_schedule() {
    let model = Model::new(Config::new(Kind::Lock));
    for seed in 0..20 {
        let (first, second) = (model.run(seed).unwrap(), model.replay(seed).unwrap());
        assert_eq!(first.counts, second.counts, "seed {seed}");
        assert!(first.trace.is_empty() && !second.trace.is_empty());
    }
}

#[test]
fn every_mutant_is_noticed() {
    let mut survivors = Vec::new();
    for mutant in mutants() {
        let model = Model::new(mutant.config);
        match model
            .run_many(0..MUTANT_SCHEDULES, threads())
            .map(|summary| summary.failure)
        {
            Ok(Some(Failure {
                seed, violation, ..
            })) => {
                println!("{}: seed {seed}, {:?}", mutant.name, violation.invariant);
            }
            Ok(None) => survivors.push(mutant.name.to_owned()),
            // A script was changed, so the mutant must be.
            Err(error) => survivors.push(format!("{}: {error}", mutant.name)),
        }
    }
    assert!(
        survivors.is_empty(),
        "not noticed in {MUTANT_SCHEDULES} schedules: {survivors:#?}"
    );
}
