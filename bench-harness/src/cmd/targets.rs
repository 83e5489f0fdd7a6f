//! `targets`: judges a stored run against the targets.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;

use super::CommandError;
use super::files::{create, save};
use crate::cmd::exit::Exit;
use crate::measure::completeness;
use crate::measure::model::{self, Report};
use crate::measure::opening::{headlines, picture};
use crate::measure::summary::Summary;
use crate::measure::targets::{Judged, Line, Outcome, Row, Targets, judge, render};

const SUMMARY: &str = "performance.json";
/// The picture at the top of the page, relative to the page.
const PICTURE: &str = "images/performance.svg";
/// The plan behind the page, `scenarios/targets.toml`; a run of a part of it has another name.
const PLAN: &str = "targets";

/// Arguments of `targets`.
#[derive(Debug, Args)]
pub struct TargetsArgs {
    /// The .json file of a run, or a directory with a report.json.
    #[arg(required_unless_present = "render")]
    run: Option<PathBuf>,
    /// Write performance.json (a summary of the run) and the two pages into this directory. The run
    /// must be all of bench-harness/scenarios/targets.toml, and nothing in it may have failed.
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
    /// Judge the performance.json in this directory again, and write performance.md and
    /// performance-goals.md from it.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["run", "write"])]
    render: Option<PathBuf>,
}

/// Runs the subcommand.
///
/// # Errors
///
/// [`CommandError`] for a file that cannot be read or written. With `--write`, also for a run that
/// is incomplete, began on a busy machine, or is not all of the plan.
pub fn run(args: &TargetsArgs) -> Result<Exit, CommandError> {
    let targets = Targets::committed()?;
    let summary = match (&args.run, &args.render) {
        (Some(run), _) => {
            let report = model::read(&file_of(run))?;
            let summary = Summary::of(&report);
            if args.write.is_some() {
                fits_the_page(&report, &judge(&targets, &summary))?;
            }
            summary
        }
        (None, kept) => Summary::load(&kept.clone().unwrap_or_default().join(SUMMARY))?,
    };
    let judged = judge(&targets, &summary);
    super::print(&table(&judged))?;
    if let Some(directory) = &args.write {
        let kept = directory.join(SUMMARY);
        save(&kept, &summary.to_json())?;
        // Read back what was written, as a later check does: a number may lose its last bit.
        write_pages(&targets, &Summary::load(&kept)?, directory)?;
    } else if let Some(directory) = &args.render {
        write_pages(&targets, &summary, directory)?;
    }
    let met = |target: &Judged<'_>| matches!(target.outcome(), Outcome::Met | Outcome::Reported);
    Ok(if judged.iter().all(met) {
        Exit::Ok
    } else {
        Exit::Unmet
    })
}

/// A part of the plan, a run that failed, or one from a busy machine is shown on the terminal, but
/// a reader of a page would not notice.
fn fits_the_page(report: &Report, judged: &[Judged<'_>]) -> Result<(), CommandError> {
    let busy = report.environment.busy();
    let busy = busy.map(|load| format!("it began at a load average of {load:.2} (run --idle)"));
    let scenario = &report.run.scenario;
    let other = (scenario != PLAN).then(|| format!("it ran {scenario}, not all of {PLAN}"));
    let skipped = report.skipped.iter();
    let skipped = skipped.map(|skip| format!("{} needs {}", skip.what, skip.needs));
    let rounds = report.cells.iter().flat_map(|cell| &cell.rounds);
    let overlaps: u64 = rounds
        .filter_map(|round| round.overlap_check.map(|check| check.overlaps))
        .sum();
    let two = (overlaps > 0).then(|| format!("{overlaps} times two holders had one lock"));
    let unmeasured = judged.iter().flat_map(|one| {
        let lines = one.lines.iter();
        let lines = lines.filter(|line| line.outcome == Outcome::NotMeasured);
        lines.map(|line| format!("goal {}, {}: not measured", one.target.id, words(line)))
    });
    let mut problems = busy
        .into_iter()
        .chain(other)
        .chain(skipped)
        .chain(two)
        .chain(completeness::missing(report))
        .chain(unmeasured);
    match problems.next() {
        None => Ok(()),
        Some(problem) => Err(CommandError::Unfit {
            run: report.run.id.clone(),
            problem,
        }),
    }
}

fn file_of(path: &Path) -> PathBuf {
    if path.is_dir() {
        path.join("report.json")
    } else {
        path.to_owned()
    }
}

fn write_pages(targets: &Targets, summary: &Summary, directory: &Path) -> Result<(), CommandError> {
    for (name, page) in render(targets, summary)? {
        save(&directory.join(name), &page)?;
    }
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
        "{:<14} {} {}: {}",
        row.outcome.replace('*', ""),
        row.figure,
        row.case,
        row.measured
    );
    for (word, field) in [("against", &row.against), ("bound", &row.bound)] {
        if field != crate::measure::report::format::NONE {
            let _ = write!(text, ", {word} {field}");
        }
    }
    text
}
