//! `failover`: faults of servers under lock load. `failover watch` only observes while you cause
//! the faults. Any other `failover` runs the harness, which causes them itself.
//!
//! | module | what it is |
//! |---|---|
//! | `polls` | polls the servers: who is primary, since when |
//! | `incidents` | turns signs into faults, each counted once |
//! | `histories` | the workers' history, in pieces that can be judged |
//! | `load` | the workers |
//! | `tally` | sums of what the checker found |
//! | `report` | the lines and the summary |
//! | `course` | runs all of them |
//! | `watch` | the arguments |

mod course;
mod histories;
mod incidents;
mod load;
mod polls;
mod report;
mod tally;
mod watch;

use clap::{Args, Subcommand};

use super::Context;
use super::harness::{HarnessArgs, hand_over};
use crate::failure::Failure;

/// Watch your servers while you fail them over, or run locktopus-bench failover
///
/// `failover watch` takes and releases locks on the servers of the URL, and reports what your
/// faults do to them. Everything else goes to locktopus-bench failover, which starts its own
/// servers and causes the faults itself. Its help: locktopus failover -- --help
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct FailoverArgs {
    #[command(subcommand)]
    own: Option<Own>,
    #[command(flatten)]
    harness: HarnessArgs,
}

#[derive(Debug, Subcommand)]
enum Own {
    /// Watch your servers while you fail them over
    Watch(watch::WatchArgs),
}

pub(crate) async fn run(args: &FailoverArgs, context: &Context) -> Result<u8, Failure> {
    match &args.own {
        Some(Own::Watch(args)) => watch::run(args, context).await,
        None => Err(hand_over("failover", &args.harness)),
    }
}

impl FailoverArgs {
    /// The arguments for the harness, which does not read the configuration of this command.
    pub(crate) fn for_harness(&self) -> Option<&HarnessArgs> {
        self.own.is_none().then_some(&self.harness)
    }
}
