//! `locktopus-bench`: measures distributed locks and reports the results.

use std::process::ExitCode;

use bench_harness::cmd::cli::Cli;
use clap::Parser as _;

fn main() -> ExitCode {
    Cli::parse().run().into()
}
