//! `failover-report`: renders stored runs, and the table of `docs/safety.md`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::files::save;
use super::{CommandError, TextArgs};
use crate::cmd::exit::Exit;
use crate::failover::model;
use crate::failover::page;
use crate::failover::report::{html, terminal};

/// Arguments of `failover-report`.
#[derive(Debug, Args)]
pub struct FailoverReportArgs {
    /// `report.json` or `summary.json` of a run. With --page, of several runs; the page shows them
    /// all.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// What to write to standard output.
    #[arg(long, short, value_enum, default_value_t, conflicts_with = "page")]
    format: Format,
    /// Write the tables of the runs between the markers of this page instead.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// With --page: change nothing, and fail if the page does not show these runs.
    #[arg(long, requires = "page")]
    check: bool,
    #[command(flatten)]
    text: TextArgs,
}

/// A format for a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For a terminal.
    #[default]
    Table,
    /// A self-contained page.
    Html,
    /// Everything.
    Json,
    /// Everything except the timelines: small enough to keep with the source.
    Summary,
}

/// Runs the subcommand.
///
/// # Errors
///
/// [`CommandError`].
pub fn run(args: &FailoverReportArgs) -> Result<Exit, CommandError> {
    let reports = args.files.iter().map(|file| model::read(file));
    let reports = reports.collect::<Result<Vec<_>, _>>()?;
    let Some(path) = &args.page else {
        let [report] = reports.as_slice() else {
            let problem = "several runs can only be shown on a page (--page)";
            return Err(CommandError::Usage(problem.to_owned()));
        };
        let text = match args.format {
            Format::Table => terminal::render(report, args.text.style()),
            Format::Html => html::render(report)?,
            Format::Json => model::to_json(report),
            Format::Summary => model::to_json(&report.summary()),
        };
        super::print(&text)?;
        return Ok(Exit::Ok);
    };
    let old = std::fs::read_to_string(path).map_err(|source| model::ReadError::Io {
        path: path.clone(),
        source,
    })?;
    let new = page::with_table(&old, &reports)
        .map_err(|problem| CommandError::Usage(format!("{}: {problem}", path.display())))?;
    if !args.check {
        save(path, &new)?;
    } else if new != old {
        let files: Vec<_> = args
            .files
            .iter()
            .map(|file| file.display().to_string())
            .collect();
        let (page, files) = (path.display(), files.join(" "));
        eprintln!(
            "{page} does not show {files}: run `locktopus-bench failover-report {files} --page {page}`"
        );
        return Ok(Exit::Regression);
    }
    Ok(Exit::Ok)
}
