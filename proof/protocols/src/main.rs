//! Visits every state of every model, prints the outcome, and writes it to a page.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use locktopus_proofs::{catalogue, page};

/// Visits every state of every model.
#[derive(Debug, Parser)]
struct Options {
    /// Write the tables into this page.
    #[arg(long, value_name = "proof/protocols/README.md")]
    write: Option<PathBuf>,
    /// Only the models whose name contains this; not to be written down.
    #[arg(long, conflicts_with = "write", default_value = "")]
    only: String,
    /// Also the runs that take minutes. Without it, what is written of them stays.
    #[arg(long)]
    all: bool,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("locktopus-proofs: {what}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    let read = |path: &PathBuf| {
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let mut text = options.write.as_ref().map_or(Ok(String::new()), read)?;
    let mut rows = Vec::new();
    for case in catalogue::all() {
        if !case.model.contains(&options.only) {
            continue;
        }
        let row = if case.long && !options.all {
            page::row_on(&text, &case).unwrap_or_default().to_owned()
        } else {
            let begun = Instant::now();
            let outcome = case.run();
            let row = page::row(&case, &outcome);
            println!("{row} {:.1?}", begun.elapsed());
            for action in outcome.broken.iter().flat_map(|broken| &broken.actions) {
                println!("    {action}");
            }
            case.judge(&outcome)?;
            row
        };
        rows.push((case, row));
    }
    let Some(path) = &options.write else {
        return Ok(());
    };
    let name = path.display();
    let places = text.find(page::BEGIN).zip(text.find(page::END));
    let (begin, end) = places.ok_or_else(|| format!("{name} has no place for the tables"))?;
    text.replace_range(begin + page::BEGIN.len()..end, &page::tables(&rows));
    std::fs::write(path, text).map_err(|error| format!("{name}: {error}"))
}
