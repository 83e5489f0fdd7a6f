//! `failover-judge`: judges kept histories again.

use std::path::{Path, PathBuf};

use clap::Args;
use locktopus_history::Verdict;

use super::CommandError;
use crate::cmd::exit::Exit;
use crate::failover::run::kept::{self, Kept};

/// Arguments of `failover-judge`.
#[derive(Debug, Args)]
pub struct FailoverJudgeArgs {
    /// Folders of cells, as `failover --keep-histories` leaves them: `histories/RUN/cell-0`, each
    /// with a `cell.json`.
    #[arg(required = true)]
    folders: Vec<PathBuf>,
}

/// Runs the subcommand. If a folder cannot be judged, the others still are, and the worst counts.
///
/// # Errors
///
/// [`CommandError`] if the result cannot be written.
pub fn run(args: &FailoverJudgeArgs) -> Result<Exit, CommandError> {
    let mut exits = Vec::new();
    for folder in &args.folders {
        match judge(folder) {
            Ok(of_folder) => exits.extend(of_folder),
            Err(CommandError::File(error)) => {
                eprintln!("FAILED: {error}");
                exits.push(Exit::Input);
            }
            Err(other) => return Err(other),
        }
    }
    let worst_first = [Exit::Overlap, Exit::Input, Exit::Measurement, Exit::Changed];
    let worst = worst_first.into_iter().find(|exit| exits.contains(exit));
    Ok(worst.unwrap_or(Exit::Ok))
}

/// Judges one cell, and returns the reasons why it fails.
fn judge(folder: &Path) -> Result<Vec<Exit>, CommandError> {
    let cell = Kept::read(folder)?;
    let verdict = cell.judge(folder)?;
    super::print(&text(&cell, &verdict))?;
    let nothing = (verdict.facts.granted == 0).then(|| "nothing was granted".to_owned());
    let mut exits = Vec::new();
    for (exit, what, problems) in [
        (
            Exit::Changed,
            "the verdict changed: ",
            cell.different(&verdict),
        ),
        (Exit::Measurement, "", nothing.into_iter().collect()),
        (
            Exit::Overlap,
            "a promise was not kept: ",
            cell.broken(&verdict),
        ),
    ] {
        for problem in problems {
            eprintln!("FAILED: {}: {what}{problem}", folder.display());
            exits.push(exit);
        }
    }
    Ok(exits)
}

fn text(cell: &Kept, verdict: &Verdict) -> String {
    let mut text = format!(
        "{} (seed {}): {} attempts, {} granted, {} faults\n",
        cell.cell,
        cell.seed,
        verdict.facts.attempts,
        verdict.facts.granted,
        verdict.outage.faults.len()
    );
    for judgement in &verdict.judgements {
        let name = judgement.property.to_string();
        let now = kept::word(judgement.outcome);
        let (outcome, why) = match cell.excused.get(&name) {
            _ if kept::is_from_elsewhere(judgement.property) => (
                cell.outcomes.get(&name).map_or(now, String::as_str),
                "in the run; histories do not show servers and data".to_owned(),
            ),
            Some(why) => (now, format!("not required: {why}")),
            None => {
                let (found, of) = (judgement.violations, judgement.checked);
                (now, format!("{found} of {of}"))
            }
        };
        text.push_str(&format!("  {outcome:<10} {name}, {why}\n"));
    }
    text
}
