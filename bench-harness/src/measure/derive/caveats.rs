//! Reasons in the data itself not to quote it.

use super::{Group, Measure, Row, Spread, groups, rtt};
use crate::measure::model::{Provider, Report};
use crate::shared::render::format::number;
use crate::shared::stall::MachineStall;

/// If the RTT varies between rounds by this many percent, ratios are doubtful.
const RESTLESS_PERCENT: f64 = 15.0;

/// Sentences derived from `report`; renderers show them beside the runner's notes.
#[must_use]
pub fn caveats(report: &Report) -> Vec<String> {
    let mut found = Vec::new();
    if report.cells.iter().all(|cell| cell.rounds.is_empty()) {
        return found;
    }
    let profile = &report.harness.build_profile;
    if profile != "release" {
        found.push(format!("{profile} build: measure again with --release."));
    }
    let servers = report
        .cells
        .iter()
        .any(|cell| cell.subject.server.is_some());
    if servers && !report.environment.pinning.pinned {
        found.push("Not pinned to cores: round trips may vary widely.".to_owned());
    }
    if let Some(load) = report.environment.busy() {
        let cores = report.environment.logical_cores;
        found.push(format!(
            "Busy machine: load average {load:.2} on {cores} cores at the start."
        ));
    }
    if report.cells.iter().any(|cell| cell.rounds.len() == 1) {
        found.push("Cells with one round: no error range.".to_owned());
    }
    if report.cells.iter().any(|cell| cell.rounds.len() == 2) {
        found.push("Cells with two rounds: the range is just these two.".to_owned());
    }
    let groups = groups(report);
    found.extend(restless(&groups));
    found.extend(
        groups
            .iter()
            .flat_map(|group| &group.rows)
            .filter_map(starved),
    );
    found.extend(busy(report));
    found
}

/// If one task has this many times the grants of another, tasks are not served equally.
const UNEQUAL: f64 = 10.0;

/// Tasks of this process that never had the lock, or had it much less often than others, and why
/// the lock is not to blame.
fn starved(row: &Row<'_>) -> Option<String> {
    let subject = &row.cell.subject;
    if subject.provider != Provider::Memory {
        return None;
    }
    let tasks = row.cell.rounds.iter().map(|round| {
        let grants = &round.acquisitions_per_worker;
        let without = grants.iter().filter(|&&grants| grants == 0).count();
        (without, grants.len())
    });
    let (without, all) = tasks.max()?;
    let most = Measure::MaxOverMin.of(row.cell)?.max;
    let who = match without {
        0 if most < UNEQUAL => return None,
        0 => format!(
            "some of {all} tasks had the lock {} times as often as others",
            number(most)
        ),
        without => format!("{without} of {all} tasks never had the lock"),
    };
    Some(format!(
        "{}, {}: {who}. A task keeps its thread, and with it the lock, until it yields. That is the executor's doing, so \
         fairness and hand-offs say nothing about the lock.",
        subject.scenario,
        row.label()
    ))
}

/// If some task waits for a CPU for more than this share of the time, in percent, latencies say
/// more about the machine than about the lock.
const BUSY_PERCENT: u64 = 50;
/// An otherwise idle machine never leaves a program waiting this long.
const LONG_GAP_NS: u64 = 50_000_000;

/// The worst round, judged by the stalls of the machine.
///
/// In a pinned run workers share one core with each other and with the spinner that keeps it awake,
/// so some task always waits, even on an idle machine. There only stalls of the harness show that
/// the machine was busy.
fn busy(report: &Report) -> Option<String> {
    let rounds = report.cells.iter().flat_map(|cell| &cell.rounds);
    let shares_cores = report.environment.pinning.pinned;
    let busy = |machine: &MachineStall| {
        let pressure = machine.cpu_pressure_ns.unwrap_or(0);
        let crowded = !shares_cores && 100 * pressure > BUSY_PERCENT * machine.watched_ns;
        crowded || machine.longest_gap_ns >= LONG_GAP_NS
    };
    let stalled: Vec<_> = rounds
        .filter_map(|round| round.machine.filter(busy))
        .collect();
    let worst = stalled
        .iter()
        .max_by_key(|machine| machine.longest_gap_ns)?;
    let count = stalled.len();
    Some(format!(
        "The machine was busy in {count} rounds; in the worst, {}.",
        worst.describe()
    ))
}

/// The RTT is the yardstick: if it moves between the rounds of a cell, so does everything measured
/// in it.
fn restless(groups: &[Group<'_>]) -> Option<String> {
    let moved = groups.iter().filter_map(|group| {
        let percents = group.rows.iter().filter_map(|row| rtt(row.cell)?.percent());
        let worst = Spread::of(percents)?.max;
        (worst > RESTLESS_PERCENT).then(|| {
            let by = match worst {
                worst if worst < 100.0 => format!("±{worst:.0}%"),
                // A percentage of so small a median means nothing.
                _ => "a multiple of itself".to_owned(),
            };
            format!("{by} in {}", group.title())
        })
    });
    let moved: Vec<String> = moved.collect();
    (!moved.is_empty()).then(|| {
        format!(
            "The RTT varied between rounds, by {}: doubt these ratios.",
            moved.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::synthetic;

    #[test]
    fn a_quiet_pinned_release_run_has_none() {
        assert_eq!(caveats(synthetic::shared()), Vec::<String>::new());
        assert_eq!(caveats(&synthetic::empty()), Vec::<String>::new());
    }

    #[test]
    fn everything_that_spoils_a_run_is_said() {
        let mut report = synthetic::shared().clone();
        report.environment.pinning.pinned = false;
        "debug".clone_into(&mut report.harness.build_profile);
        report.environment.load_average_at_start = Some([3.5, 0.0, 0.0]);
        report.cells[0].rounds.truncate(1);
        report.cells[2].rounds.truncate(2);
        if let Some(ping) = &mut report.cells[1].rounds[0].ping {
            ping.summary.p50_ns *= 2;
        }
        let found = caveats(&report);
        for start in [
            "debug build",
            "Not pinned",
            "Busy machine",
            "Cells with one round",
            "Cells with two rounds",
            "The RTT varied between rounds, by ±",
        ] {
            assert!(
                found.iter().any(|caveat| caveat.starts_with(start)),
                "{start}: {found:#?}"
            );
        }
    }

    #[test]
    fn a_task_that_never_yields_starves_its_neighbours_and_that_is_said() {
        let mut report = synthetic::memory_only();
        let of = |report: &Report| caveats(report).join("\n");
        assert!(!of(&report).contains("never had the lock"));
        report.cells[0].rounds[0].acquisitions_per_worker = vec![1_000, 0, 0];
        let found = of(&report);
        assert!(found.contains("2 of 3 tasks never had the lock"), "{found}");
        report.cells[0].rounds[0].acquisitions_per_worker = vec![1_000, 10, 10];
        let found = of(&report);
        assert!(found.contains("100 times as often"), "{found}");
        assert!(found.contains("the executor's doing"), "{found}");
    }

    #[test]
    fn a_machine_that_was_busy_is_named_with_its_worst_round() {
        let mut report = synthetic::memory_only();
        report.environment.pinning.pinned = false;
        let quiet = MachineStall {
            watched_ns: 1_000_000_000,
            cpu_pressure_ns: Some(100_000_000),
            longest_gap_ns: 6_000_000,
            ..MachineStall::default()
        };
        report.cells[0].rounds[0].machine = Some(quiet);
        assert_eq!(busy(&report), None);
        let crowded = MachineStall {
            cpu_pressure_ns: Some(600_000_000),
            ..quiet
        };
        report.cells[0].rounds[0].machine = Some(crowded);
        assert!(busy(&report).unwrap().contains("60 % of the time"));
        // Pinned workers make each other wait.
        report.environment.pinning.pinned = true;
        assert_eq!(busy(&report), None);
        let stopped = MachineStall {
            longest_gap_ns: 75_000_000,
            ..quiet
        };
        report.cells[0].rounds[0].machine = Some(stopped);
        assert!(busy(&report).unwrap().contains("at most 75 ms"));
    }
}
