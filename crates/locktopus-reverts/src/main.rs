//! Takes mends back, one at a time, in a copy of the sources, and looks whether the test that guards each notices.
//!
//! `scripts/reverts` runs it. Layers, lowest first: table, sources, copy, cargo, trial.

mod cargo;
mod copy;
mod page;
mod sources;
mod table;
mod trial;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

use crate::table::Fault;

/// Takes mends back, one at a time, and looks whether the test that guards each notices.
#[derive(Debug, Parser)]
#[command(name = "scripts/reverts")]
struct Options {
    /// Build and run nothing: check that every revert fits the sources, names a test, and is on the page.
    #[arg(long, conflicts_with_all = ["only", "write"])]
    check: bool,
    /// Write the table into docs/testing.md.
    #[arg(long, conflicts_with = "only")]
    write: bool,
    /// Only the reverts of these faults.
    #[arg(long, value_name = "NUMBER", num_args = 1..)]
    only: Vec<u32>,
    /// The root of the sources.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    root: PathBuf,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("reverts: {what}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), String> {
    let root = options
        .root
        .canonicalize()
        .map_err(|error| format!("{}: {error}", options.root.display()))?;
    let faults = table::read(&root.join(table::FOLDER))?;
    check(&root, &faults)?;
    if options.write {
        return page::write(&root, &faults);
    }
    page::check(&root, &faults)?;
    let reverts: usize = faults.iter().map(|fault| fault.reverts.len()).sum();
    println!(
        "{} faults, {reverts} reverts: all fit the sources",
        faults.len()
    );
    if options.check {
        return Ok(());
    }
    trial::run(&root, &faults, &options.only)
}

/// Whether everything in the table is in the sources.
fn check(root: &Path, faults: &[Fault]) -> Result<(), String> {
    let mut wrong = Vec::new();
    for fault in faults {
        let mut note = |what: String| wrong.push(format!("{}: {what}", fault.file));
        for mutants in &fault.mutants {
            for name in &mutants.names {
                sources::names_mutant(root, &mutants.file, name).unwrap_or_else(&mut note);
            }
        }
        for revert in &fault.reverts {
            let of = |what: String| format!("\"{}\": {what}", revert.mend);
            for change in &revert.change {
                if let Err(what) = sources::changed(root, change) {
                    note(of(what));
                }
            }
            if let Err(what) = sources::has_test(root, &revert.test) {
                note(of(what));
            }
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!("stale:\n  {}", wrong.join("\n  "))),
    }
}
