//! `report`: renders a stored run again.

use std::path::{Path, PathBuf};

use clap::Args;

use super::CommandError;
use super::files::{create, save};
use super::text::style;
use crate::cmd::exit::Exit;
use crate::measure::model::{self, Report};
use crate::measure::report::{html, terminal};
use crate::shared::render::table::Style;

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The .json file of a run.
    file: PathBuf,
    /// Also write the files that a run writes into this directory.
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs the subcommand.
///
/// # Errors
///
/// [`CommandError`] when the file cannot be read or a result cannot be written.
pub fn run(args: &ReportArgs) -> Result<Exit, CommandError> {
    let report = model::read(&args.file)?;
    super::print(&terminal::render(&report, style()))?;
    if let Some(directory) = &args.out {
        write(&report, directory)?;
    }
    Ok(Exit::Ok)
}

/// Writes a run into `directory`, created when missing: as JSON, as a page and as text.
///
/// # Errors
///
/// [`CommandError`] when a result cannot be written.
pub fn write(report: &Report, directory: &Path) -> Result<(), CommandError> {
    create(directory)?;
    save(&directory.join("report.json"), &model::to_json(report))?;
    save(&directory.join("report.html"), &html::render(report)?)?;
    let table = terminal::render(report, Style::default());
    save(&directory.join("report.txt"), &table)
}
