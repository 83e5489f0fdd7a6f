//! The findings of a run besides its headlines, in words.

use super::headline::{Rounds, against, name};
use crate::measure::derive::{self, Better, Group, Measure, Quantile, Row, groups, overlaps};
use crate::measure::model::{Cell, Report, op};
use crate::measure::plan::Strategy;
use crate::shared::render::format::{count, natural, number};

/// The strategy that others are compared with.
const OURS: &str = "locktopus";

/// How R1 differs from Redisson as a reference, if it was measured.
#[must_use]
pub fn reference(report: &Report) -> Option<&'static str> {
    let mut cells = report.cells.iter();
    cells.any(|cell| cell.subject.strategy == Strategy::R1.name()).then_some(
        "publish and retry: a release wakes every waiter of a process, where Redisson's wakes one. With many waiters in a \
         process R1 is easier to beat.",
    )
}

/// A few sentences, the most important first; empty if nothing was measured.
#[must_use]
pub fn findings(report: &Report) -> Vec<String> {
    let groups = groups(report);
    let mut found: Vec<String> = safety(report).into_iter().collect();
    let direct = |group: &&Group<'_>| !group.corrected && !group.through_proxy;
    for group in groups.iter().filter(direct) {
        let said = match group.scenario {
            "uncontended" => uncontended(group),
            "many-locks" => many_locks(group),
            "renewal" => renewal(group),
            _ => None,
        };
        found.extend(said);
    }
    found
}

/// Whether locks excluded each other: without that nothing else counts.
fn safety(report: &Report) -> Option<String> {
    let checks: Vec<_> = report.cells.iter().filter_map(overlaps).collect();
    let checked: u64 = checks.iter().map(|check| check.checked).sum();
    let found: u64 = checks.iter().map(|check| check.found).sum();
    let failed: u64 = report
        .cells
        .iter()
        .flat_map(|cell| derive::errors(cell).into_values())
        .sum();
    let failures = match failed {
        0 => "no operation failed".to_owned(),
        1 => "1 operation failed".to_owned(),
        failed => format!("{} operations failed", count(failed)),
    };
    (checked > 0).then(|| match found {
        0 => format!(
            "No lock had two holders at once, in {} checked holds; {failures}.",
            count(checked)
        ),
        found => format!(
            "{} TIMES A LOCK HAD TWO HOLDERS, in {} checked holds; {failures}.",
            count(found),
            count(checked)
        ),
    })
}

fn uncontended(group: &Group<'_>) -> Option<String> {
    let ours = ours(group)?;
    let pair = Measure::Latency(op::PAIR.to_owned(), Quantile::P50);
    let trips = Measure::LatencyInRtt(op::PAIR.to_owned(), Quantile::P50).of(ours.cell);
    let trips = trips.map_or_else(String::new, |trips| {
        format!(" ({} round trips)", number(trips.median))
    });
    Some(format!(
        "Uncontended, {} takes {}{trips} to acquire and release a lock{}.",
        called(ours),
        natural(pair.of(ours.cell)?.median),
        direction(group, ours, &pair, ["faster", "slower"])
    ))
}

fn many_locks(group: &Group<'_>) -> Option<String> {
    let ours = ours(group)?;
    let rate = Measure::Throughput;
    Some(format!(
        "With many locks, {} makes {} acquisitions per second, by {} workers with a lock each{}.",
        called(ours),
        number(rate.of(ours.cell)?.median),
        count(u64::from(ours.cell.subject.workers)),
        direction(group, ours, &rate, ["slower", "faster"])
    ))
}

fn renewal(group: &Group<'_>) -> Option<String> {
    let ours = ours(group)?;
    let cpu = Measure::ServerCpu;
    Some(format!(
        "Renewal by {} costs the server {} of CPU for each of {} held locks{}.",
        called(ours),
        natural(cpu.of(ours.cell)?.median),
        count(u64::from(ours.cell.subject.locks)),
        direction(group, ours, &cpu, ["less", "more"])
    ))
}

/// How ours compares with its peers; without any, which way the measure is better. The words say
/// that the peers' values are larger, and smaller.
fn direction(group: &Group<'_>, ours: &Row<'_>, measure: &Measure, words: [&str; 2]) -> String {
    let rounds = |cell: &Cell| -> Rounds {
        let rounds = cell.rounds.iter();
        rounds
            .filter_map(|round| Some((round.index, measure.of_round(round)?)))
            .collect()
    };
    let others: Vec<(String, &Cell)> = others(group, ours)
        .into_iter()
        .filter_map(|row| Some((name(&row.cell.subject)?.1, row.cell)))
        .collect();
    let others = others
        .iter()
        .map(|(name, cell)| (name.as_str(), rounds(cell)));
    let said = against(&rounds(ours.cell), others, words);
    match (said.is_empty(), measure.better()) {
        (false, _) => said,
        (true, Better::Lower) => " (less is better)".to_owned(),
        (true, Better::Higher) => " (more is better)".to_owned(),
    }
}

/// The first cell of this library on a server.
fn ours<'a, 'b>(group: &'a Group<'b>) -> Option<&'a Row<'b>> {
    let mut rows = group.rows.iter();
    rows.find(|row| is_ours(row) && row.cell.subject.server.is_some())
}

/// This library, with what tells the cell from its others.
fn called(ours: &Row<'_>) -> String {
    match ours.series.as_str() {
        OURS => "Locktopus".to_owned(),
        series => format!("Locktopus ({series})"),
    }
}

fn is_ours(row: &Row<'_>) -> bool {
    row.cell.subject.strategy == OURS
}

/// Peers under the same load on the same servers.
fn others<'a, 'b>(group: &'a Group<'b>, ours: &Row<'_>) -> Vec<&'a Row<'b>> {
    let same = |row: &&Row<'_>| {
        let (a, b) = (&row.cell.subject, &ours.cell.subject);
        !is_ours(row)
            && (a.topology, a.workers, a.processes) == (b.topology, b.workers, b.processes)
    };
    group.rows.iter().filter(same).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::synthetic;

    #[test]
    fn what_was_found_is_said_in_words_and_with_its_direction() {
        let plan = include_str!("../../../scenarios/targets.toml");
        let text = findings(&synthetic::planned(plan)).join("\n");
        for wanted in [
            "No lock had two",
            "Uncontended, ",
            "With many locks, ",
            "Renewal by ",
        ] {
            let line = text.lines().find(|line| line.starts_with(wanted));
            let line = line.unwrap_or_else(|| panic!("{wanted}: {text}"));
            let directions = ["at once", "is better)", " than ", "about the same as"];
            assert!(directions.iter().any(|way| line.contains(way)), "{line}");
            assert!(
                wanted == "No lock had two" || line.contains("Locktopus"),
                "{line}"
            );
        }
        assert!(findings(&synthetic::empty()).is_empty());
    }

    #[test]
    fn a_peer_with_fewer_acquisitions_is_slower() {
        let mut report = synthetic::planned(include_str!("../../../scenarios/targets.toml"));
        let peers = report.cells.iter_mut();
        for cell in peers.filter(|cell| cell.subject.strategy == "R1") {
            for round in &mut cell.rounds {
                round.acquisitions /= 2;
            }
        }
        let text = findings(&report).join("\n");
        let line = text
            .lines()
            .find(|line| line.starts_with("With many locks, "));
        let wanted = "2.0x faster than publish and retry";
        assert!(line.is_some_and(|line| line.contains(wanted)), "{text}");
    }

    #[test]
    fn an_overlap_is_the_first_that_is_said() {
        let mut report = synthetic::shared().clone();
        let round = &mut report.cells[0].rounds[0];
        let check = round.overlap_check.as_mut().unwrap();
        check.overlaps = 3;
        let found = findings(&report);
        assert!(found[0].starts_with("3 TIMES A LOCK HAD TWO"), "{found:?}");
    }
}
