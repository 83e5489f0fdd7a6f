//! The findings of a run besides its headlines, in words.

use super::headline::{Rounds, against, name};
use crate::measure::derive::{self, Group, Measure, Quantile, Row, groups, overlaps};
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
        "R1 = publish and retry: a release wakes every waiter of a process, where Redisson's wakes one of each; with many \
         waiters in a process R1 is the easier one to beat.",
    )
}

/// A few sentences, the most important first; empty if nothing was measured.
#[must_use]
pub fn findings(report: &Report) -> Vec<String> {
    let groups = groups(report);
    let mut found: Vec<String> = safety(report).into_iter().collect();
    for group in groups.iter().filter(|group| !group.corrected) {
        let said = match group.scenario {
            "uncontended" => alone(group),
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
            "No two holders had one lock in {} holds that were looked at, and {failures}.",
            count(checked)
        ),
        found => format!(
            "{} TIMES TWO HOLDERS HAD ONE LOCK, in {} holds; {failures}.",
            count(found),
            count(checked)
        ),
    })
}

fn alone(group: &Group<'_>) -> Option<String> {
    let pair = Measure::Latency(op::PAIR.to_owned(), Quantile::P50);
    let mut rows = group.rows.iter();
    let ours = rows.find(|row| is_ours(row) && on_servers(row))?;
    let trips = Measure::LatencyInRtt(op::PAIR.to_owned(), Quantile::P50).of(ours.cell);
    let trips = trips.map_or_else(String::new, |trips| {
        format!(" ({} round trips)", number(trips.median))
    });
    let own = pair.of(ours.cell)?.median;
    let mut said = format!(
        "A lock that nobody else wants takes {}{trips} to get and to give back, by {}",
        natural(own),
        ours.series
    );
    let rounds = |cell: &Cell| -> Rounds {
        let rounds = cell.rounds.iter();
        rounds
            .filter_map(|round| Some((round.index, pair.of_round(round)?)))
            .collect()
    };
    let others: Vec<(String, &Cell)> = others(group, ours)
        .into_iter()
        .filter_map(|row| Some((name(&row.cell.subject)?.1, row.cell)))
        .collect();
    let others = others
        .iter()
        .map(|(name, cell)| (name.as_str(), rounds(cell)));
    said.push_str(&against(&rounds(ours.cell), others, ["faster", "slower"]));
    said.push('.');
    Some(said)
}

fn renewal(group: &Group<'_>) -> Option<String> {
    let row = group.rows.iter().find(|row| is_ours(row))?;
    let cpu = Measure::ServerCpu.of(row.cell)?.median;
    Some(format!(
        "Each of {} held locks costs the server {} of its processor for a renewal.",
        count(u64::from(row.cell.subject.locks)),
        natural(cpu)
    ))
}

fn is_ours(row: &Row<'_>) -> bool {
    row.cell.subject.strategy == OURS
}

fn on_servers(row: &Row<'_>) -> bool {
    row.cell.subject.server.is_some()
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
    fn what_was_found_is_said_in_words() {
        let found = findings(synthetic::shared());
        let text = found.join("\n");
        for wanted in [
            "No two holders had one lock",
            "A lock that nobody else wants takes",
        ] {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
        assert!(findings(&synthetic::empty()).is_empty());
    }

    #[test]
    fn an_overlap_is_the_first_that_is_said() {
        let mut report = synthetic::shared().clone();
        let round = &mut report.cells[0].rounds[0];
        let check = round.overlap_check.as_mut().unwrap();
        check.overlaps = 3;
        let found = findings(&report);
        assert!(found[0].starts_with("3 TIMES TWO HOLDERS"), "{found:?}");
    }
}
