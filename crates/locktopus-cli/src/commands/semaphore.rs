//! `semaphore`: how many permits there are. They are taken by `run` and `lock`, with `--kind
//! semaphore`.

use clap::{Args, Subcommand};
use locktopus::{Locktopus, Semaphore};
use serde::Serialize;

use super::Context;
use crate::failure::Failure;
use crate::locks::{close, connect};

/// Which semaphore.
#[derive(Args, Debug)]
pub(crate) struct Which {
    /// The semaphore's name, without the namespace
    name: String,

    /// One whose permits have ids and expiries (--kind permit_semaphore of other commands)
    #[arg(long)]
    with_ids: bool,
}

/// What to do with a semaphore.
#[derive(Debug, Subcommand)]
pub(crate) enum SemaphoreCommand {
    /// Print how many permits are free
    Show(Which),
    /// Say how many permits there are, unless somebody has
    Init {
        #[command(flatten)]
        which: Which,
        /// How many
        permits: u32,
    },
    /// Say how many permits there are in all, free and held
    Resize {
        #[command(flatten)]
        which: Which,
        /// How many
        permits: u32,
    },
    /// Add free permits; a negative number takes some away
    Add {
        #[command(flatten)]
        which: Which,
        /// How many
        #[arg(allow_negative_numbers = true)]
        permits: i32,
    },
    /// Take all free permits away; they come back by add
    Drain(Which),
    /// Forget the semaphore and who holds permits
    Delete(Which),
}

#[derive(Serialize)]
struct Free {
    name: String,
    /// `null`: nobody has said how many there are.
    available: Option<i64>,
    /// Whether this command changed it.
    changed: bool,
}

impl Which {
    fn of(&self, locks: &Locktopus) -> Semaphore {
        if self.with_ids {
            locks.permit_semaphore(&*self.name)
        } else {
            locks.semaphore(&*self.name)
        }
    }
}

pub(crate) async fn run(command: SemaphoreCommand, context: &Context) -> Result<(), Failure> {
    let locks = connect(&context.config).await?;
    let initialises = matches!(command, SemaphoreCommand::Init { .. });
    let free = change(command, &locks).await;
    close(locks).await;
    let free = free?;
    if initialises && !free.changed {
        context.out.say("nothing was changed: the number of permits was set before; `semaphore resize` changes it");
    }
    context.out.answer(&free, |free| match free.available {
        Some(available) => available.to_string(),
        None => "nobody has said how many permits there are".to_owned(),
    })
}

async fn change(command: SemaphoreCommand, locks: &Locktopus) -> Result<Free, Failure> {
    let (which, changed) = match command {
        SemaphoreCommand::Show(which) => (which, false),
        SemaphoreCommand::Init { which, permits } => {
            let changed = which.of(locks).initialise(permits).await?;
            (which, changed)
        }
        SemaphoreCommand::Resize { which, permits } => {
            which.of(locks).resize(permits).await?;
            (which, true)
        }
        SemaphoreCommand::Add { which, permits } => {
            which.of(locks).add(permits).await?;
            (which, permits != 0)
        }
        SemaphoreCommand::Drain(which) => {
            let taken = which.of(locks).drain().await?;
            (which, taken > 0)
        }
        SemaphoreCommand::Delete(which) => {
            let changed = which.of(locks).delete().await?;
            (which, changed)
        }
    };
    let available = which.of(locks).available().await?;
    Ok(Free {
        name: which.name,
        available,
        changed,
    })
}
