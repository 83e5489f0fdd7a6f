//! What a run found, in words: what a report opens with.

use super::{Group, Measure, Quantile, Row, groups, overlaps};
use crate::measure::model::{Report, op};
use crate::measure::plan::Strategy;
use crate::shared::render::format::{count, natural, number};

/// The strategy that others are compared with.
const OURS: &str = "locktopus";

/// What makes R1 another reference than Redisson, where it was measured.
#[must_use]
pub fn reference(report: &Report) -> Option<&'static str> {
    let mut cells = report.cells.iter();
    cells.any(|cell| cell.subject.strategy == Strategy::R1.name()).then_some(
        "R1 = publish and retry: a release wakes every waiter of a process, where Redisson's wakes one of each; with many \
         waiters in a process R1 is the easier one to beat.",
    )
}

/// A few sentences, what matters most first; empty if nothing was measured.
#[must_use]
pub fn findings(report: &Report) -> Vec<String> {
    let groups = groups(report);
    let mut found: Vec<String> = safety(report).into_iter().collect();
    for group in groups.iter().filter(|group| !group.corrected) {
        let said = match group.scenario {
            "hot-lock" => hot(group),
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
        .flat_map(|cell| super::errors(cell).into_values())
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

/// One of our rows with servers, and the others under the same load: where most workers want the lock.
fn hot(group: &Group<'_>) -> Option<String> {
    let rate = |row: &Row<'_>| Some(Measure::Throughput.of(row.cell)?.median);
    let peers = |row: &Row<'_>| others(group, row);
    let ours = group
        .rows
        .iter()
        .filter(|row| is_ours(row) && on_servers(row));
    // What most users have, beside others that do the same, and where most workers want it.
    let ours = ours.max_by_key(|row| {
        let usual = row.cell.subject.lock_kind == "lock";
        (
            usual && !peers(row).is_empty(),
            usual,
            each_gives_back(row),
            row.cell.subject.workers,
        )
    })?;
    let own = rate(ours)?;
    let subject = &ours.cell.subject;
    let wait = Measure::Latency(op::ACQUIRE.to_owned(), Quantile::Max).of(ours.cell);
    let wait = wait.map_or_else(String::new, |wait| {
        format!(", and nobody waited longer than {}", natural(wait.max))
    });
    // What goes from task to task of a process is no match for what others do between processes.
    let inside = match !each_gives_back(ours) && subject.workers > subject.processes {
        true => ", mostly from task to task of one process,",
        false => "",
    };
    let mut said = format!(
        "A lock that {} workers in {} want is handed on{inside} {} times a second by {}{wait}.",
        subject.workers,
        processes(subject.processes),
        number(own),
        ours.series
    );
    let ratios: Vec<String> = peers(ours)
        .into_iter()
        .filter_map(|row| {
            let times = number(own / rate(row)?);
            Some(format!("{times} x {}", name(row)))
        })
        .collect();
    if !ratios.is_empty() {
        said.push_str(&format!(" That is {}.", ratios.join(", ")));
    }
    let as_it_comes = group.rows.iter().find(|row| is_as_it_comes(row, ours));
    if let Some(rate) = as_it_comes.and_then(rate) {
        said.push_str(&format!(
            " As it comes, tasks of one process pass it on among themselves before it goes back: {} times a second.",
            number(rate)
        ));
    }
    Some(said)
}

/// The option that says how many tasks of a process have a lock before it goes back to the server.
const TURNS: &str = "turns";

/// Whether the lock goes back to the server each time, as those of others do.
fn each_gives_back(row: &Row<'_>) -> bool {
    row.cell.subject.options.get(TURNS).map(String::as_str) == Some("1")
}

/// The same as another row, with the default number of turns.
fn is_as_it_comes(row: &Row<'_>, other: &Row<'_>) -> bool {
    let mut options = other.cell.subject.options.clone();
    options.remove(TURNS).is_some()
        && row.cell.subject
            == crate::measure::model::Subject {
                options,
                ..other.cell.subject.clone()
            }
}

fn alone(group: &Group<'_>) -> Option<String> {
    let p50 = |row: &Row<'_>| {
        let pair = Measure::Latency(op::PAIR.to_owned(), Quantile::P50);
        Some(pair.of(row.cell)?.median)
    };
    let mut rows = group.rows.iter();
    let ours = rows.find(|row| is_ours(row) && on_servers(row))?;
    let trips = Measure::LatencyInRtt(op::PAIR.to_owned(), Quantile::P50).of(ours.cell);
    let trips = trips.map_or_else(String::new, |trips| {
        format!(" ({} round trips)", number(trips.median))
    });
    let own = p50(ours)?;
    let mut said = format!(
        "A lock that nobody else wants takes {}{trips} to get and to give back, by {}.",
        natural(own),
        ours.series
    );
    let ratios: Vec<String> = others(group, ours)
        .into_iter()
        .filter_map(|row| Some(format!("{} x {}", number(own / p50(row)?), name(row))))
        .collect();
    if !ratios.is_empty() {
        said.push_str(&format!(" That is {}.", ratios.join(", ")));
    }
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

/// A peer in a word; of one with several kinds the kind as well.
fn name(row: &Row<'_>) -> String {
    let subject = &row.cell.subject;
    match subject.strategy.as_str() {
        "redisson" => format!("redisson {}", subject.lock_kind),
        strategy => strategy.to_owned(),
    }
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

fn processes(count: u32) -> String {
    match count {
        1 => "one process".to_owned(),
        count => format!("{count} processes"),
    }
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
            "want is handed on",
            "x rslock",
            "A lock that nobody else wants takes",
        ] {
            assert!(text.contains(wanted), "{wanted}: {text}");
        }
        assert!(findings(&synthetic::empty()).is_empty());
    }

    #[test]
    fn what_goes_from_task_to_task_is_not_held_against_others() {
        let mut report = synthetic::shared().clone();
        let is_hot = |cell: &&mut crate::measure::model::Cell| {
            let subject = &cell.subject;
            subject.scenario == "hot-lock" && subject.strategy == OURS && subject.server.is_some()
        };
        for cell in report.cells.iter_mut().filter(is_hot) {
            cell.subject.workers = 8;
            cell.subject.processes = 2;
        }
        let text = findings(&report).join("\n");
        assert!(text.contains("mostly from task to task"), "{text}");

        let mut alike = report.cells.iter_mut().find(is_hot).unwrap().clone();
        alike
            .subject
            .options
            .insert(TURNS.to_owned(), "1".to_owned());
        report.cells.push(alike);
        let text = findings(&report).join("\n");
        assert!(!text.contains("mostly from task to task"), "{text}");
        assert!(text.contains("As it comes, tasks of one process"), "{text}");
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
