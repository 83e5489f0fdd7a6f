//! `failover`: faults of servers under lock load. `failover watch` looks on while somebody else
//! does the faults; everything else is the harness's, which does them itself.
//!
//! | module | what it is |
//! |---|---|
//! | `looks` | what the servers say of themselves, again and again |
//! | `incidents` | from signs to faults, each counted once |
//! | `histories` | what the workers write down, in pieces that can be judged |
//! | `load` | the workers |
//! | `tally` | what the checker found, added up |
//! | `report` | lines and the summary |
//! | `course` | all of them together |
//! | `watch` | what the command line says of it |

mod course;
mod histories;
mod incidents;
mod load;
mod looks;
mod report;
mod tally;
mod watch;

use clap::{Args, Subcommand};

use super::Context;
use super::harness::{HarnessArgs, hand_over};
use crate::failure::Failure;

/// Watches your servers while you fail them over, or hands over to the harness
///
/// `failover watch` takes and gives back locks on the servers of the URL, and says what your faults
/// do to them. Everything else goes to locktopus-bench failover, which starts servers of its own
/// and does the faults itself; its own help: locktopus failover -- --help
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
    /// What goes to the harness, which reads no configuration of this command.
    pub(crate) fn for_harness(&self) -> Option<&HarnessArgs> {
        self.own.is_none().then_some(&self.harness)
    }
}
