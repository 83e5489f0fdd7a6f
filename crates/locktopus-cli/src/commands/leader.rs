//! `leader`: runs a program on one of many machines, and on another one if that fails.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use locktopus::url::parse_duration;

use super::Context;
use super::run::{RunArgs, run_again};
use crate::failure::Failure;
use crate::locks::{LabelArgs, NameArg};

/// Run a program on one of many machines: the one that leads
///
/// Waits until this machine leads, then runs the program as `run` would: with its token in
/// LOCKTOPUS_TOKEN, and ended in time if leadership is lost. Then it campaigns again, until the
/// program ends on its own. The name is that of a mutex.
#[derive(Args, Debug)]
pub(crate) struct LeaderArgs {
    #[command(flatten)]
    name: NameArg,

    /// Length of the lease, renewed after a third. After a leader crashes, no machine leads
    /// for at most this long. Default: that of the URL, else 30s
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    lease: Option<Duration>,

    /// End each term after this long, so that leadership rotates
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    max_term: Option<Duration>,

    /// Time the program has to end after TERM before it gets KILL. See run
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    grace: Option<Duration>,

    #[command(flatten)]
    label: LabelArgs,

    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(crate) async fn run(args: LeaderArgs, context: &Context) -> Result<u8, Failure> {
    let mut program = RunArgs::of_a_mutex(args.name, args.command);
    program.lease = args.lease;
    (program.max_hold, program.max_hold_option) = (args.max_term, "--max-term");
    program.grace = args.grace;
    program.label = args.label;
    run_again(&program, context).await
}
