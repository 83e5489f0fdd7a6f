//! `proof/run scripts` and `proof/run reverts`: see the library.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use locktopus_gate::{reverts, scripts};

/// Removes rules, one at a time, and checks that a test notices.
#[derive(Debug, Parser)]
#[command(name = "gate")]
struct Arguments {
    /// The root of the repository.
    #[arg(long, value_name = "FOLDER", default_value = ".", global = true)]
    root: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Changes the shipped Lua in every small way.
    Scripts(scripts::Options),
    /// Reverts fixes.
    Reverts {
        /// Only the reverts whose fix contains these words.
        #[arg(long, value_name = "WORDS")]
        only: Option<String>,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match &arguments.command {
        Command::Scripts(options) => scripts::run(&arguments.root, options),
        Command::Reverts { only } => reverts::run(&arguments.root, only.as_deref()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("gate: {what}");
            ExitCode::FAILURE
        }
    }
}
