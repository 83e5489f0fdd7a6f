//! `compare`: two stored runs side by side.

use std::path::PathBuf;

use clap::Args;

use super::{CommandError, TextArgs};
use crate::cmd::exit::Exit;
use crate::measure::model;
use crate::measure::report::compare::compare;
use crate::measure::report::compare_terminal;

/// Arguments of `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// The .json file of the earlier run.
    before: PathBuf,
    /// The .json file of the later run.
    after: PathBuf,
    /// Exit with 1 when a figure is worse by more than noise and by more than this, or is missing
    /// on one side. Exit with 3 when a run is incomplete or a part of it failed, because then there
    /// is nothing to compare with.
    #[arg(long, value_name = "PCT")]
    fail_above: Option<f64>,
    /// Show figures within noise, too.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    text: TextArgs,
}

/// Runs the subcommand.
///
/// # Errors
///
/// [`CommandError`] when a file cannot be read or the result cannot be written.
pub fn run(args: &CompareArgs) -> Result<Exit, CommandError> {
    if args
        .fail_above
        .is_some_and(|percent| !percent.is_finite() || percent < 0.0)
    {
        return Err(CommandError::Usage(
            "--fail-above takes a percentage of at least 0".to_owned(),
        ));
    }
    let (before, after) = (model::read(&args.before)?, model::read(&args.after)?);
    let comparison = compare(&before, &after);
    let style = args.text.style();
    super::print(&compare_terminal::render(&comparison, args.all, style))?;
    let Some(percent) = args.fail_above else {
        return Ok(Exit::Ok);
    };
    let failures = comparison.failures(percent);
    for failure in &failures {
        eprintln!("worse by more than {percent}%, or gone: {failure}");
    }
    let unfit = comparison.unfit();
    for problem in &unfit {
        eprintln!("FAILED: {problem}");
    }
    Ok(if !unfit.is_empty() {
        Exit::Input
    } else if failures.is_empty() {
        Exit::Ok
    } else {
        Exit::Regression
    })
}
