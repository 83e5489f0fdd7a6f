//! `leader`: a program on one of many machines, and on another when that one fails.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use humantime::parse_duration;

use super::Context;
use super::run::{RunArgs, run_again};
use crate::failure::Failure;
use crate::locks::{LabelArgs, NameArg};

/// What the leader runs.
///
/// Waits until this machine leads, and runs the program as long as it does, as `run` would: with
/// its token in LOCKTOPUS_TOKEN, and ended in time when leadership is lost. Then it campaigns
/// again, until the program ends by itself. The name is that of a mutex.
#[derive(Args, Debug)]
pub(crate) struct LeaderArgs {
    #[command(flatten)]
    name: NameArg,

    /// Length of the lease, which is renewed after a third: how long nobody leads after a leader
    /// crashed. Default: what the URL says, else 30s
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    lease: Option<Duration>,

    /// End each term after this long, so that leadership goes round
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    max_term: Option<Duration>,

    /// How long the program may take to end after TERM before it gets KILL. See run
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
    program.max_hold = args.max_term;
    program.grace = args.grace;
    program.label = args.label;
    run_again(&program, context).await
}
