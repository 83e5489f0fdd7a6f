//! `failover-judge`: judges kept histories again.

use std::path::PathBuf;

use clap::Args;

use super::CommandError;
use crate::cmd::exit::Exit;
use crate::failover::run::kept::{self, Kept};

/// Arguments of `failover-judge`.
#[derive(Debug, Args)]
pub struct FailoverJudgeArgs {
    /// Folders of cells, as `failover --keep-histories` leaves them: `histories/RUN/cell-0`, each with a `cell.json`.
    #[arg(required = true)]
    folders: Vec<PathBuf>,
}

/// Runs the subcommand.
///
/// # Errors
///
/// [`CommandError`].
pub fn run(args: &FailoverJudgeArgs) -> Result<Exit, CommandError> {
    let mut exit = Exit::Ok;
    for folder in &args.folders {
        let cell = Kept::read(folder)?;
        let verdict = cell.judge(folder)?;
        let mut text = format!(
            "{} (seed {}): {} attempts, {} granted\n",
            cell.cell, cell.seed, verdict.facts.attempts, verdict.facts.granted
        );
        for judgement in &verdict.judgements {
            let name = judgement.property.to_string();
            let (outcome, why) = match cell.excused.get(&name) {
                _ if kept::is_from_elsewhere(judgement.property) => (
                    cell.outcomes
                        .get(&name)
                        .map_or("not judged", String::as_str),
                    "then; servers and data are in no history".to_owned(),
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
        super::print(&text)?;
        for difference in cell.different(&verdict) {
            eprintln!("another verdict than then: {difference}");
            exit = Exit::Regression;
        }
        for promise in cell.broken(&verdict) {
            eprintln!("FAILED: a promise was not kept: {promise}");
            exit = Exit::Overlap;
        }
    }
    Ok(exit)
}
