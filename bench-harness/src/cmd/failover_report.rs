//! `failover-report`: renders stored runs, and the table of `docs/safety.md`.

use std::path::PathBuf;

use clap::Args;

use super::CommandError;
use super::files::save;
use super::text::style;
use crate::cmd::exit::Exit;
use crate::failover::model;
use crate::failover::page;
use crate::failover::report::terminal;
use crate::shared::file;

/// Arguments of `failover-report`.
#[derive(Debug, Args)]
pub struct FailoverReportArgs {
    /// `report.json` of a run. With --page, of several runs; the page shows them all.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Write the tables of the runs between the markers of this page instead.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// With --page: change nothing, and fail if the page does not show these runs.
    #[arg(long, requires = "page")]
    check: bool,
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
        let text = terminal::render(report, style());
        super::print(&text)?;
        return Ok(Exit::Ok);
    };
    let old = file::text(path)?;
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
        return Ok(Exit::Changed);
    }
    Ok(Exit::Ok)
}
