//! `semaphore`: manages the number of permits. `run` and `lock` take permits, with
//! `--kind semaphore`.

use clap::{Args, Subcommand};
use locktopus::{Locktopus, Semaphore};
use serde::Serialize;

use super::Context;
use crate::failure::Failure;
use crate::locks::{close, connect};

/// The semaphore to use.
#[derive(Args, Debug)]
pub(crate) struct SemaphoreArg {
    /// The semaphore's name, without the namespace
    name: String,

    /// Its permits have ids and expiries (--kind permit_semaphore in other commands)
    #[arg(long)]
    with_ids: bool,
}

/// What to do with a semaphore.
#[derive(Debug, Subcommand)]
pub(crate) enum SemaphoreCommand {
    /// Print how many permits are free
    Show(SemaphoreArg),
    /// Set the number of permits, unless it is set
    Init {
        #[command(flatten)]
        which: SemaphoreArg,
        /// Number of permits
        permits: u32,
    },
    /// Change the number of permits, free and held
    Resize {
        #[command(flatten)]
        which: SemaphoreArg,
        /// Number of permits
        permits: u32,
    },
    /// Add free permits; a negative number takes some away
    Add {
        #[command(flatten)]
        which: SemaphoreArg,
        /// Number of permits
        #[arg(allow_negative_numbers = true)]
        permits: i32,
    },
    /// Remove all free permits; add brings them back
    Drain(SemaphoreArg),
    /// Delete the semaphore and the record of who holds permits
    Delete(SemaphoreArg),
}

#[derive(Serialize)]
struct Free {
    name: String,
    /// `null`: the number is not set.
    available: Option<i64>,
    /// Whether this command changed it.
    changed: bool,
}

impl SemaphoreArg {
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
        context.out.say("nothing was changed: the number of permits is already set; change it with locktopus semaphore resize");
    }
    context.out.answer(&free, |free| match free.available {
        Some(available) => available.to_string(),
        None => "the number of permits is not set".to_owned(),
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
