//! `locktopus`, the command: runs programs under locks, looks at locks, breaks them.
//!
//! Everything goes through the facade crate `locktopus`: what a URL means is its business, and
//! nothing here knows of any store.
//!
//! | module | what it is |
//! |---|---|
//! | `exit` | what the process returns |
//! | `output` | text for people, JSON for programs |
//! | `failure` | what went wrong, and the exit code that goes with it |
//! | `config` | where the URL comes from |
//! | `locks` | from arguments to a lock |
//! | `commands` | one file for each command |
//! | `cli` | the command line |
//! | `usage` | errors of the command line |

#[cfg(not(unix))]
compile_error!("locktopus-cli stops process groups, so it needs a Unix");

mod cli;
mod commands;
mod config;
mod exit;
mod failure;
mod locks;
mod output;
mod usage;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    ExitCode::from(match cli::Cli::try_parse() {
        Ok(cli) => cli.run(),
        Err(error) => usage::report(error),
    })
}
