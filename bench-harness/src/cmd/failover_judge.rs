//! `failover-judge`: judges kept histories again.

mod whole;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use locktopus_history::Verdict;
use whole::Beside;

use super::CommandError;
use crate::cmd::exit::Exit;
use crate::failover::run::kept::{self, Kept, KeptError};
use crate::shared::completeness::Evidence;

/// Reasons why a folder fails, the worst first. With several folders the process returns the worst.
const WORST_FIRST: [Exit; 4] = [
    Exit::Overlap,
    Exit::Input,
    Exit::Measurement,
    Exit::Regression,
];
const FAILED: &str = "failed";

/// Arguments of `failover-judge`.
#[derive(Debug, Args)]
pub struct FailoverJudgeArgs {
    /// Folders of cells, as `failover --keep-histories` leaves them: `histories/RUN/cell-0`, each
    /// with a `cell.json`. If the report of the run is still beside `histories`, it must match the
    /// cell.
    #[arg(required = true)]
    folders: Vec<PathBuf>,
}

/// Runs the subcommand. If a folder cannot be judged, the others still are.
///
/// # Errors
///
/// [`CommandError`] if the result cannot be written.
pub fn run(args: &FailoverJudgeArgs) -> Result<Exit, CommandError> {
    let mut exits = Vec::new();
    for folder in &args.folders {
        match judge(folder) {
            Ok(of_folder) => exits.extend(of_folder),
            Err(CommandError::Kept(error)) => {
                eprintln!("FAILED: {error}");
                exits.push(Exit::Input);
            }
            Err(other) => return Err(other),
        }
    }
    let worst = WORST_FIRST.into_iter().find(|exit| exits.contains(exit));
    Ok(worst.unwrap_or(Exit::Ok))
}

/// Judges one cell, and returns the reasons why it fails.
fn judge(folder: &Path) -> Result<Vec<Exit>, CommandError> {
    let cell = read(folder)?;
    let verdict = cell.judge(folder)?;
    let report = Beside::of(folder, &cell)?;
    super::print(&text(&cell, &verdict, report.as_ref()))?;
    let name = folder.display();
    let mut exits = Vec::new();
    for difference in cell
        .different(&verdict)
        .into_iter()
        .chain(unsaid(&cell, &verdict))
    {
        eprintln!("FAILED: {name}: the verdict changed: {difference}");
        exits.push(Exit::Regression);
    }
    let evidence = Evidence {
        granted: verdict.facts.granted > 0,
        done: None,
        errors: &BTreeMap::new(),
        is_expected: |_: &str| false,
    };
    let missing = whole::missing(folder, &cell, &verdict, report.as_ref())?;
    for problem in evidence.problems().into_iter().chain(missing) {
        eprintln!("FAILED: {name}: {problem}");
        exits.push(Exit::Measurement);
    }
    for promise in cell
        .broken(&verdict)
        .into_iter()
        .chain(broken_then(&cell, &verdict))
    {
        eprintln!("FAILED: {name}: a promise was not kept: {promise}");
        exits.push(Exit::Overlap);
    }
    Ok(exits)
}

/// Reads a folder's `cell.json`. The error names the folders that the argument should have named.
fn read(folder: &Path) -> Result<Kept, KeptError> {
    let problem = |problem: &str| KeptError {
        path: folder.to_owned(),
        problem: problem.to_owned(),
    };
    if !folder.is_dir() {
        return Err(problem("there is no such folder"));
    }
    if !folder.join(kept::FILE).exists() {
        return Err(problem(
            "no cell.json in it; pass the folders of cells that `failover --keep-histories` left, as histories/RUN/cell-0",
        ));
    }
    Kept::read(folder)
}

fn text(cell: &Kept, verdict: &Verdict, report: Option<&Beside>) -> String {
    let compared = report.map_or_else(
        || "no report beside them".to_owned(),
        |report| format!("compared with {}", report.path.display()),
    );
    let mut text = format!(
        "{} (seed {}): {} attempts, {} granted, {} faults; {compared}\n",
        cell.cell,
        cell.seed,
        verdict.facts.attempts,
        verdict.facts.granted,
        verdict.outage.faults.len()
    );
    for judgement in &verdict.judgements {
        let name = judgement.property.to_string();
        let (outcome, why) = match cell.excused.get(&name) {
            _ if kept::is_from_elsewhere(judgement.property) => (
                cell.outcomes
                    .get(&name)
                    .map_or("not judged", String::as_str),
                "in the run; histories do not show servers and data".to_owned(),
            ),
            Some(why) => (
                kept::word(judgement.outcome),
                format!("not required: {why}"),
            ),
            None => {
                let (found, of) = (judgement.violations, judgement.checked);
                (kept::word(judgement.outcome), format!("{found} of {of}"))
            }
        };
        text.push_str(&format!("  {outcome:<10} {name}, {why}\n"));
    }
    text
}

/// Properties whose outcome is not in `cell.json`, so there is nothing to compare.
fn unsaid<'a>(cell: &'a Kept, verdict: &'a Verdict) -> impl Iterator<Item = String> + 'a {
    let judgements = verdict.judgements.iter();
    judgements.filter_map(|judgement| {
        let name = judgement.property.to_string();
        let now = kept::word(judgement.outcome);
        (!cell.outcomes.contains_key(&name)).then(|| format!("{name}: nothing then, {now} now"))
    })
}

/// Properties that are required, failed in the run, and cannot be judged from histories.
fn broken_then<'a>(cell: &'a Kept, verdict: &'a Verdict) -> impl Iterator<Item = String> + 'a {
    let judgements = verdict.judgements.iter();
    let elsewhere = judgements.filter(|judgement| kept::is_from_elsewhere(judgement.property));
    elsewhere.filter_map(|judgement| {
        let name = judgement.property.to_string();
        let failed = cell.outcomes.get(&name).map(String::as_str) == Some(FAILED);
        (failed && !cell.excused.contains_key(&name)).then(|| format!("{name}, as in the run"))
    })
}
