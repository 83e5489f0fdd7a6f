//! Random schedules of simulated clients on modelled servers: what must not happen, does not.
//!
//! `LOCKTOPUS_MODEL_SCHEDULES` sets the number of schedules of each test, 200 unless given. A failure names its seed, and
//! `LOCKTOPUS_MODEL_SEED` runs the schedule of that seed alone.
#![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

use std::ops::Range;
use std::thread::available_parallelism;

use locktopus_testkit::model::sim::{Config, Failure, Kind, Model, Summary, mutants};

/// Schedules in which each mutant must be noticed.
const MUTANT_SCHEDULES: u64 = 3_000;

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
        None => 0..number("LOCKTOPUS_MODEL_SCHEDULES").unwrap_or(200),
    }
}

fn threads() -> usize {
    available_parallelism().map_or(1, usize::from)
}

fn run(config: Config) -> Summary {
    let summary = Model::new(config).run_many(seeds(), threads()).unwrap();
    let failovers = if config.failovers { ", failovers" } else { "" };
    println!("{:?}{failovers}: {summary}", config.kind);
    assert!(
        summary.failure.is_none(),
        "{:?}{failovers}: {summary}",
        config.kind
    );
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
