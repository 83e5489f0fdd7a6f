//! `locktopus`, the command: runs programs under locks, inspects locks, breaks them.
//!
//! Everything goes through the facade crate `locktopus`. It interprets the URL; nothing here knows
//! a particular store.
//!
//! | module | what it is |
//! |---|---|
//! | `exit` | exit codes |
//! | `output` | text for people, JSON for programs |
//! | `failure` | error messages, each with its exit code |
//! | `config` | finds the URL |
//! | `locks` | turns arguments into a lock |
//! | `commands` | one file for each command |
//! | `cli` | the command line |
//! | `usage` | errors in the command line |

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
