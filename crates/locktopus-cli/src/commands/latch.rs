//! `latch`: count-down latches.

use std::time::Duration;

use clap::Subcommand;
use locktopus::url::parse_duration;
use serde::Serialize;

use super::Context;
use crate::failure::Failure;
use crate::locks::{close, connect};

/// What to do with a latch.
#[derive(Debug, Subcommand)]
pub(crate) enum LatchCommand {
    /// Print the remaining count
    Show {
        /// The latch's name, without the namespace
        name: String,
    },
    /// Set the count, unless there is one
    Set {
        /// The latch's name, without the namespace
        name: String,
        /// Count to start from
        count: u64,
    },
    /// Decrement the count by one
    Down {
        /// The latch's name, without the namespace
        name: String,
    },
    /// Wait until the count is zero
    Wait {
        /// The latch's name, without the namespace
        name: String,
        /// How long to wait. Default: without limit
        #[arg(long, value_parser = parse_duration, value_name = "TIME")]
        wait: Option<Duration>,
    },
    /// Delete the count, which opens the latch
    Delete {
        /// The latch's name, without the namespace
        name: String,
    },
}

#[derive(Serialize)]
struct Count {
    name: String,
    count: u64,
    /// Whether this command changed it.
    changed: bool,
}

pub(crate) async fn run(command: LatchCommand, context: &Context) -> Result<(), Failure> {
    let locks = connect(&context.config).await?;
    let done = async {
        let (name, count, changed) = match command {
            LatchCommand::Show { name } => {
                let count = locks.latch(&*name).count().await?;
                (name, count, false)
            }
            LatchCommand::Set { name, count } => {
                let latch = locks.latch(&*name);
                let changed = latch.initialise(count).await?;
                (name, latch.count().await?, changed)
            }
            LatchCommand::Down { name } => {
                let count = locks.latch(&*name).count_down().await?;
                (name, count, true)
            }
            LatchCommand::Wait { name, wait } => {
                let waiting = locks.latch(&*name).wait();
                match wait {
                    Some(wait) => waiting.at_most(wait).await?,
                    None => waiting.await?,
                }
                (name, 0, false)
            }
            LatchCommand::Delete { name } => {
                let changed = locks.latch(&*name).delete().await?;
                (name, 0, changed)
            }
        };
        Ok::<_, Failure>(Count {
            name,
            count,
            changed,
        })
    };
    let count = done.await;
    close(locks).await;
    context.out.answer(&count?, |count| count.count.to_string())
}
