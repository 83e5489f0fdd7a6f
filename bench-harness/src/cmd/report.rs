//! `report`: renders a stored run again.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::files::{create, save};
use super::{CommandError, TextArgs};
use crate::cmd::exit::Exit;
use crate::measure::model::{self, Report};
use crate::measure::report::{csv, hgrm, html, terminal};

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The .json file of a run.
    file: PathBuf,
    /// Format; may be repeated or separated by commas.
    #[arg(
        long,
        short,
        value_enum,
        value_delimiter = ',',
        default_value = "table"
    )]
    format: Vec<Format>,
    /// Directory to write to instead of standard output; needed for several files.
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    text: TextArgs,
}

/// The formats of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned table.
    Table,
    /// The stored model, as JSON.
    Json,
    /// One row per cell, round and operation.
    Csv,
    /// Percentile text, one file per cell and operation.
    Hgrm,
    /// One self-contained page.
    Html,
}

/// Runs the subcommand.
///
/// # Errors
///
/// [`CommandError`] when the file cannot be read or a result cannot be written.
pub fn run(args: &ReportArgs) -> Result<Exit, CommandError> {
    let report = model::read(&args.file)?;
    match (&args.out, args.format.as_slice()) {
        (None, [format]) if *format != Format::Hgrm => {
            let text = render(&report, *format, args.text)?;
            super::print(&text)?;
        }
        (None, _) => {
            let text = "several formats and hgrm make several files: pass --out DIR";
            return Err(CommandError::Usage(text.to_owned()));
        }
        (Some(directory), formats) => {
            for path in write(&report, formats, directory, args.text)? {
                eprintln!("{}", path.display());
            }
        }
    }
    Ok(Exit::Ok)
}

/// Writes `report` in each of `formats` into `directory` (created when missing), in files named
/// after the run. Returns their paths; for `.hgrm` the path of their directory.
pub fn write(
    report: &Report,
    formats: &[Format],
    directory: &Path,
    text: TextArgs,
) -> Result<Vec<PathBuf>, CommandError> {
    write_as(report, formats, directory, text, &stem(&report.run.id))
}

/// As [`write()`], in files named `stem`.
///
/// # Errors
///
/// As [`write()`].
pub fn write_as(
    report: &Report,
    formats: &[Format],
    directory: &Path,
    text: TextArgs,
    stem: &str,
) -> Result<Vec<PathBuf>, CommandError> {
    let mut written = Vec::new();
    create(directory)?;
    for format in formats {
        let path = directory.join(format!("{stem}.{}", extension(*format)));
        if *format == Format::Hgrm {
            create(&path)?;
            for file in hgrm::files(report)? {
                save(&path.join(&file.name), &file.text)?;
            }
        } else {
            save(&path, &render(report, *format, text)?)?;
        }
        written.push(path);
    }
    Ok(written)
}

fn render(report: &Report, format: Format, text: TextArgs) -> Result<String, CommandError> {
    Ok(match format {
        Format::Table => terminal::render(report, text.style()),
        Format::Json => model::to_json(report),
        Format::Csv => csv::render(report)?,
        Format::Html => html::render(report)?,
        Format::Hgrm => hgrm::files(report)?
            .into_iter()
            .map(|file| file.text)
            .collect(),
    })
}

const fn extension(format: Format) -> &'static str {
    match format {
        Format::Table => "txt",
        Format::Json => "json",
        Format::Csv => "csv",
        Format::Hgrm => "hgrm",
        Format::Html => "html",
    }
}

/// The run id comes from a file, so it must not lead outside the directory.
fn stem(id: &str) -> String {
    let safe = |c: char| {
        if c.is_ascii_alphanumeric() || "-_".contains(c) {
            c
        } else {
            '_'
        }
    };
    let stem: String = id.chars().map(safe).collect();
    if stem.is_empty() {
        "run".to_owned()
    } else {
        stem
    }
}
