//! `targets`: judges stored runs against the targets.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;

use super::CommandError;
use super::files::{create, save};
use crate::cmd::exit::Exit;
use crate::measure::completeness;
use crate::measure::model::{self, Report};
use crate::measure::opening::{headlines, picture};
use crate::measure::summary::{Summary, SummaryError};
use crate::measure::targets::{
    Judged, Line, Outcome, Row, Targets, Whole, judge, render, unmeasured,
};

const SUMMARY: &str = "performance.json";
const PAGE: &str = "performance.md";
/// The picture at the top of the page, relative to the page.
const PICTURE: &str = "images/performance.svg";

/// Arguments of `targets`.
#[derive(Debug, Args)]
pub struct TargetsArgs {
    /// The .json files of runs on one machine, or directories with a report.json.
    #[arg(required_unless_present = "render")]
    runs: Vec<PathBuf>,
    /// Write performance.json (a summary of the runs) and performance.md into this directory. The
    /// runs must be exactly what bench-harness/scenarios/targets.toml asks for: each cell once,
    /// with all its rounds at full length.
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
    /// Judge the performance.json in this directory again, and write performance.md from it.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["runs", "write"])]
    render: Option<PathBuf>,
}

/// Runs the subcommand.
///
/// # Errors
///
/// [`CommandError`] when a file cannot be read or written, or runs do not belong together. If a
/// page is asked for, also when a run is incomplete, began on a busy machine, or differs from the
/// plan.
pub fn run(args: &TargetsArgs) -> Result<Exit, CommandError> {
    let targets = Targets::committed()?;
    if let Some(directory) = &args.render {
        let summary = Summary::load(&directory.join(SUMMARY))?;
        // Targets may be newer than the run: the page marks what they ask for and the run lacks.
        // The summary does not keep the length of rounds.
        is_nothing_else(&Whole::committed()?.differences(&summary))?;
        let judged = judge(&targets, &summary);
        super::print(&table(&judged))?;
        write_page(&targets, &summary, directory)?;
        return Ok(verdict(&judged));
    }
    let reports = args
        .runs
        .iter()
        .map(|path| model::read(&file_of(path)))
        .collect::<Result<Vec<_>, _>>()?;
    // Results from a busy machine are shown, but do not become a page.
    let busy = reports.iter().find_map(|report| report.environment.busy());
    if let (Some(_), Some(load)) = (&args.write, busy) {
        return Err(SummaryError::Busy { load }.into());
    }
    if args.write.is_some() {
        reports.iter().try_for_each(is_complete)?;
    }
    let summary = Summary::of(&reports)?;
    let judged = judge(&targets, &summary);
    super::print(&table(&judged))?;
    if let Some(directory) = &args.write {
        is_whole(&reports, &summary, &judged)?;
        let kept = directory.join(SUMMARY);
        save(&kept, &summary.to_json())?;
        // Read back what was written, as a later check does: a number may lose its last bit.
        let summary = Summary::load(&kept)?;
        write_page(&targets, &summary, directory)?;
    }
    Ok(verdict(&judged))
}

fn verdict(judged: &[Judged<'_>]) -> Exit {
    let met = |target: &Judged<'_>| matches!(target.outcome(), Outcome::Met | Outcome::Reported);
    if judged.iter().all(met) {
        Exit::Ok
    } else {
        Exit::Unmet
    }
}

/// A failed run keeps its report, and may be passed here: it is shown, but becomes no page.
fn is_complete(report: &Report) -> Result<(), SummaryError> {
    let rounds = report.cells.iter().flat_map(|cell| &cell.rounds);
    let overlaps: u64 = rounds
        .filter_map(|round| round.overlap_check.map(|check| check.overlaps))
        .sum();
    let two = (overlaps > 0).then(|| format!("{overlaps} times two holders had one lock"));
    let mut problems = two.into_iter().chain(completeness::missing(report));
    match problems.next() {
        None => Ok(()),
        Some(problem) => Err(SummaryError::Incomplete {
            run: report.run.id.clone(),
            problem,
        }),
    }
}

/// How many differences the error names; the table above shows the rest.
const NAMED: usize = 5;

/// The runs must be the whole plan: a reader cannot notice a gap, a repeated cell looks like two
/// cells, and the page does not show the length of rounds.
fn is_whole(
    reports: &[Report],
    summary: &Summary,
    judged: &[Judged<'_>],
) -> Result<(), CommandError> {
    let whole = Whole::committed()?;
    let mut differences = whole.differences(summary);
    differences.extend(unmeasured(judged));
    let shortened = reports.iter().flat_map(|report| whole.shortened(report));
    differences.extend(shortened);
    is_nothing_else(&differences)
}

/// Refuses a page for runs that differ from the plan.
fn is_nothing_else(differences: &[String]) -> Result<(), CommandError> {
    if differences.is_empty() {
        return Ok(());
    }
    let (count, named) = (differences.len(), differences.len().min(NAMED));
    let mut first = differences[..named].join("; ");
    if count > named {
        let _ = write!(first, "; and {} more", count - named);
    }
    Err(SummaryError::NotThePlan { count, first }.into())
}

fn file_of(path: &Path) -> PathBuf {
    if path.is_dir() {
        path.join("report.json")
    } else {
        path.to_owned()
    }
}

fn write_page(targets: &Targets, summary: &Summary, directory: &Path) -> Result<(), CommandError> {
    save(&directory.join(PAGE), &render(targets, summary)?)?;
    if let Some(picture) = picture(&headlines(&summary.cells)) {
        let path = directory.join(PICTURE);
        if let Some(images) = path.parent() {
            create(images)?;
        }
        save(&path, &picture)?;
    }
    Ok(())
}

/// One line for each case, for a terminal, and the obstacle for each target that is missed.
fn table(judged: &[Judged<'_>]) -> String {
    let mut out = String::new();
    for target in judged {
        let _ = writeln!(
            out,
            "{}: {} ({})",
            target.target.id,
            target.outcome().name().trim_matches('*'),
            target.target.goal
        );
        for line in &target.lines {
            let _ = writeln!(out, "  {}", words(line));
        }
        let missed = target.outcome() == Outcome::NotMet;
        if let Some((cost, tried)) = target.target.explanation().filter(|_| missed) {
            let _ = writeln!(out, "  in the way: {}", cost.replace('\n', " "));
            let _ = writeln!(out, "  tried: {}", tried.replace('\n', " "));
        }
    }
    out
}

fn words(line: &Line<'_>) -> String {
    let row = Row::of(line);
    let mut text = format!(
        "{:<14} {} {}",
        row.outcome.replace('*', ""),
        row.figure,
        row.case
    );
    let _ = write!(text, ": {}", row.measured);
    for (word, field) in [("against", &row.against), ("bound", &row.bound)] {
        if field != crate::measure::report::format::NONE {
            let _ = write!(text, ", {word} {field}");
        }
    }
    text
}
