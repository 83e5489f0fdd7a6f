//! The measurement that docs/performance.md is made from, as far as it is a proof: of which code it speaks, and that nothing was
//! wrong while it was made.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use bench_harness::measure::model::{Pacing, Subject};
use bench_harness::measure::plan::{Filter, ScenarioFile, Strategy, Task};
use serde::Deserialize;

use crate::outcome::Outcome;

const FILE: &str = "docs/performance.json";
/// What is measured for it.
const PLAN: &str = "bench-harness/scenarios/targets.toml";
/// What is measured there are locks or waiters that stay: nobody comes after another. Everywhere else two holders at once are
/// looked for.
const WITHOUT_TURNS: [&str; 3] = ["renewal", "held-memory", "waiting-memory"];

#[derive(Debug, Deserialize)]
struct Summary {
    runs: Vec<Run>,
    skipped: Vec<serde_json::Value>,
    cells: Vec<Cell>,
}

#[derive(Debug, Deserialize)]
struct Run {
    rounds: usize,
}

#[derive(Debug, Deserialize)]
struct Cell {
    run: usize,
    subject: Subject,
    /// `None`: nobody looked.
    overlaps: Option<u64>,
    errors: u64,
    rounds: Vec<u32>,
    /// By name, one for each round.
    #[serde(default)]
    figures: BTreeMap<String, Vec<Option<f64>>>,
}

/// What is kept of it.
///
/// # Errors
///
/// If it cannot be read.
pub(crate) fn kept(root: &Path) -> Result<String, String> {
    std::fs::read_to_string(root.join(FILE)).map_err(|error| format!("{FILE}: {error}"))
}

/// Whether it is of all that the plan asks for, in as many rounds: a part of it has fewer holders and fewer failures.
///
/// # Errors
///
/// If something of the plan was not measured, in whole or in part; if something was that is not of the plan, or twice; or if the plan
/// cannot be read.
pub(crate) fn is_all_of_the_plan(root: &Path, kept: &str) -> Result<(), String> {
    let summary = read(kept)?;
    let failed = |error: &dyn std::fmt::Display| format!("{PLAN}: {error}");
    let plan = ScenarioFile::load(&root.join(PLAN)).map_err(|error| failed(&error))?;
    let tasks = plan
        .tasks(&Filter::default())
        .map_err(|error| failed(&error))?;
    // How often each is there: what tells some of them apart, a kept cell has in words of its own.
    let mut known = BTreeMap::<String, i64>::new();
    for task in &tasks {
        *known.entry(planned(task, plan.rounds)).or_default() += 1;
    }
    for cell in &summary.cells {
        *known.entry(measured(cell)).or_default() -= 1;
    }
    let of_cell = |cell: &Cell| format!("{:?}", cell.subject);
    let apart: BTreeSet<_> = summary.cells.iter().map(of_cell).collect();
    let differ: Vec<_> = known
        .iter()
        .filter(|(_, number)| **number != 0)
        .map(|(what, number)| match number {
            1.. => format!("{what}: {number} missing"),
            _ => format!("{what}: {} too many", -number),
        })
        .collect();
    match (differ.is_empty(), summary.cells.len() - apart.len()) {
        (true, 0) => Ok(()),
        (true, twice) => Err(format!("{FILE}: {twice} combinations are there twice")),
        (false, _) => Err(format!("{FILE} is not {PLAN}: {}", differ.join("; "))),
    }
}

fn planned(task: &Task, rounds: u32) -> String {
    let kind = match task.strategy {
        Strategy::Locktopus | Strategy::Redisson => task.kind.name(),
        Strategy::R1 => "lock",
        Strategy::Bare | Strategy::Rslock => "mutex",
    };
    let who = [
        task.scenario.name(),
        task.strategy.name(),
        kind,
        task.client.name(),
        task.topology.name(),
    ];
    let numbers = [task.workers, task.processes, task.locks];
    described(
        who,
        numbers,
        (task.pacing(), task.hold.as_nanos()),
        task.rounds_of(rounds),
    )
}

fn measured(cell: &Cell) -> String {
    let subject = &cell.subject;
    let who = [
        &*subject.scenario,
        &*subject.strategy,
        &*subject.lock_kind,
        &*subject.client,
        subject.topology.name(),
    ];
    let numbers = [subject.workers, subject.processes, subject.locks];
    let load = (subject.pacing, u128::from(subject.hold_ns));
    described(who, numbers, load, cell.rounds.len() as u32)
}

fn described(
    [scenario, strategy, kind, client, topology]: [&str; 5],
    [workers, processes, locks]: [u32; 3],
    (pacing, hold_ns): (Pacing, u128),
    rounds: u32,
) -> String {
    format!(
        "{scenario} {strategy} {kind} via {client} on {topology}, {workers} workers in {processes}, {locks} locks, {pacing:?}, \
         hold {hold_ns} ns, {rounds} rounds"
    )
}

fn read(kept: &str) -> Result<Summary, String> {
    serde_json::from_str(kept).map_err(|error| format!("{FILE}: {error}"))
}

/// What came of it: two holders at once and operations that failed are violations, and so is what was not measured: a cell in
/// which nobody looked for two holders, fewer rounds than were planned, something that was skipped.
///
/// # Errors
///
/// If nothing was measured.
pub(crate) fn outcome(kept: &str) -> Result<Outcome, String> {
    let summary = read(kept)?;
    let violations = |cell: &Cell| cell.errors + two_at_once(cell) + missing(cell, &summary.runs);
    match summary.cells.len() {
        0 => Err(format!("{FILE}: nothing was measured")),
        cases => Ok(Outcome {
            cases: cases as u64,
            violations: summary.cells.iter().map(violations).sum::<u64>()
                + summary.skipped.len() as u64,
            ..Outcome::default()
        }),
    }
}

fn two_at_once(cell: &Cell) -> u64 {
    cell.overlaps.unwrap_or_else(|| {
        let has_no_turns = WITHOUT_TURNS.contains(&&*cell.subject.scenario);
        u64::from(!has_no_turns)
    })
}

/// Rounds that are missing, of a cell or of its figures: a cell may have fewer rounds than its run, and then says so.
fn missing(cell: &Cell, runs: &[Run]) -> u64 {
    let of_cell = cell.subject.options.get("rounds");
    let of_cell = of_cell.and_then(|rounds| rounds.parse().ok());
    let of_run = runs.get(cell.run).map_or(usize::MAX, |run| run.rounds);
    let planned = of_cell.unwrap_or(of_run);
    let of_figures = cell.figures.values().map(Vec::len).max();
    let there = cell.rounds.len().min(of_figures.unwrap_or(0));
    planned.saturating_sub(there) as u64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

    use super::*;
    use crate::build;

    fn subject(scenario: &str, options: &str) -> String {
        format!(
            r#""subject": {{"scenario": "{scenario}", "strategy": "locktopus", "client": "redis-rs", "topology": "standalone",
            "nodes": 1, "provider": "plain", "server": null, "lock_kind": "lock", "workers": 1, "processes": 1, "locks": 1,
            "pacing": {{"kind": "closed-loop"}}, "hold_ns": 0, "through_proxy": false, "options": {options}}}"#
        )
    }

    /// A run of two rounds, of one cell of this scenario.
    fn of(scenario: &str, cell: &str) -> Outcome {
        let subject = subject(scenario, "{}");
        let kept = format!(
            r#"{{"runs": [{{"rounds": 2}}], "skipped": [], "cells": [{{"run": 0, {subject}, {cell}}}]}}"#
        );
        outcome(&kept).unwrap()
    }

    #[test]
    fn two_holders_and_failures_are_violations() {
        let cell = |overlaps: &str, errors: u64| {
            format!(
                r#""overlaps": {overlaps}, "errors": {errors}, "rounds": [0, 1], "figures": {{"RTT": [1, 2]}}"#
            )
        };
        assert_eq!(of("hot-lock", &cell("0", 0)).violations, 0);
        assert_eq!(of("hot-lock", &cell("2", 3)).violations, 5);
        // Nobody looked, where somebody must.
        assert_eq!(of("hot-lock", &cell("null", 0)).violations, 1);
        assert_eq!(of("renewal", &cell("null", 0)).violations, 0);
        let nothing = r#"{"runs": [], "skipped": [], "cells": []}"#;
        assert!(outcome(nothing).is_err());
    }

    #[test]
    fn what_was_not_measured_is_a_violation() {
        let figures = r#""figures": {"RTT": [1, 2]}"#;
        let cell = format!(r#""overlaps": 0, "errors": 0, "rounds": [0], {figures}"#);
        assert_eq!(of("hot-lock", &cell).violations, 1);
        let without = r#""overlaps": 0, "errors": 0, "rounds": [0, 1], "figures": {}"#;
        assert_eq!(of("hot-lock", without).violations, 2);
        let subject = subject("uncontended", r#"{"rounds": "2"}"#);
        let fewer = format!(
            r#"{{"runs": [{{"rounds": 5}}], "skipped": ["Redisson"], "cells": [{{"run": 0, "overlaps": 0, "errors": 0,
            "rounds": [0, 1], {figures}, {subject}}}]}}"#
        );
        assert_eq!(outcome(&fewer).unwrap().violations, 1);
    }

    #[test]
    fn what_is_kept_is_all_of_the_plan() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let kept = kept(root).unwrap();
        let outcome = outcome(&kept).unwrap();
        assert!(outcome.cases > 10 && outcome.violations == 0, "{outcome}");
        is_all_of_the_plan(root, &kept).unwrap();
        assert!(build::of(std::slice::from_ref(&kept)).is_ok());

        // Each of these once passed.
        let told = |change: fn(&mut Vec<serde_json::Value>), word: &str| {
            let mut value: serde_json::Value = serde_json::from_str(&kept).unwrap();
            change(value["cells"].as_array_mut().unwrap());
            let told = is_all_of_the_plan(root, &value.to_string()).unwrap_err();
            assert!(told.contains(word), "{told}");
        };
        told(|cells| cells.truncate(3), "missing");
        told(|cells| drop(cells.remove(0)), "missing");
        told(|cells| cells.push(cells[0].clone()), "too many");
        told(
            |cells| cells[0]["rounds"].as_array_mut().unwrap().truncate(1),
            "rounds: 1 missing",
        );
        told(
            |cells| {
                cells[0]["subject"]["scenario"] = "renewal".into();
                cells[0]["overlaps"] = serde_json::Value::Null;
            },
            "renewal",
        );
        // As many as are planned, of which one is another's double.
        told(
            |cells| {
                let safety =
                    |cell: &serde_json::Value| !cell["subject"]["options"]["safety"].is_null();
                let of_modes: Vec<_> = (0..cells.len()).filter(|at| safety(&cells[*at])).collect();
                let double = |one: usize, other: usize| {
                    let [mut one, other] = [cells[one].clone(), cells[other].clone()];
                    one["subject"]["options"] = other["subject"]["options"].clone();
                    one["subject"] == other["subject"]
                };
                let pairs = of_modes
                    .iter()
                    .flat_map(|one| of_modes.iter().map(move |other| (*one, *other)));
                let (one, other) = pairs
                    .filter(|(one, other)| one != other)
                    .find(|(one, other)| double(*one, *other))
                    .unwrap();
                cells[one] = cells[other].clone();
            },
            "twice",
        );
    }
}
