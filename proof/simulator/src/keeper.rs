//! Initialises semaphores again on servers that may forget their number, as an application has to.
//! Until then requests fail because there is no semaphore.

use std::sync::Arc;
use std::time::Duration;

use locktopus_core::{LockError, Locktopus};
use tokio::time::sleep;

use crate::pace::Pace;
use crate::plan::{Fault, Kind, Plan};
use crate::world::MS;

const OFTEN: Duration = Duration::from_secs(1);

/// Runs until aborted. `calm` is when the last fault is over.
pub(crate) async fn keep(plan: Arc<Plan>, locks: Locktopus, pace: Pace, calm: u64) {
    let any = |wrong: fn(&Fault) -> bool| plan.faults.iter().any(|(_, fault)| wrong(fault));
    if !any(|fault| fault.forgets()) {
        return;
    }
    // If a semaphore moves key by key, its number may survive while its holders are forgotten, or
    // the other way round. Only someone who knows the total can repair that, once no forgotten
    // holder believes in its permits.
    let mut torn = any(|fault| matches!(fault, Fault::MoveSlot(..)));
    loop {
        sleep(OFTEN).await;
        if torn && pace.now() > calm + plan.lease * MS {
            torn = resize(&plan, &locks).await.is_err();
        }
        for lock in &plan.locks {
            let name = lock.name.as_str();
            // It may fail during a fault, and is repeated.
            let _ = match lock.kind {
                Kind::Semaphore(total) => locks.semaphore(name).initialise(total).await,
                Kind::Permits(total) => locks.permit_semaphore(name).initialise(total).await,
                _ => continue,
            };
        }
    }
}

async fn resize(plan: &Plan, locks: &Locktopus) -> Result<(), LockError> {
    for lock in &plan.locks {
        let name = lock.name.as_str();
        let resized = match lock.kind {
            Kind::Semaphore(total) => locks.semaphore(name).resize(total).await,
            Kind::Permits(total) => locks.permit_semaphore(name).resize(total).await,
            _ => continue,
        };
        // A name in use as another kind is no semaphore.
        resized
            .map(drop)
            .or_else(|error| match error.other_kind() {
                Some(_) => Ok(()),
                None => Err(error),
            })?;
    }
    Ok(())
}
