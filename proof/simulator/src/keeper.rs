//! Gives semaphores their number anew where servers may forget it, as an application has to: until
//! then those who ask are told that there is none.

use std::sync::Arc;
use std::time::Duration;

use locktopus_core::{LockError, Locktopus};
use tokio::time::sleep;

use crate::pace::Pace;
use crate::plan::{Fault, Kind, Plan};
use crate::world::MS;

const OFTEN: Duration = Duration::from_secs(1);

/// Never ends by itself. `calm`: when the last fault is over.
pub(crate) async fn keep(plan: Arc<Plan>, locks: Locktopus, pace: Pace, calm: u64) {
    let any = |wrong: fn(&Fault) -> bool| plan.faults.iter().any(|(_, fault)| wrong(fault));
    if !any(|fault| fault.forgets()) {
        return;
    }
    // Of a semaphore that moves key by key the number may stay while its holders are forgotten, or
    // the other way round. Only who knows how many permits there are can set that right, once
    // nobody believes in what was forgotten.
    let mut torn = any(|fault| matches!(fault, Fault::MoveSlot(..)));
    loop {
        sleep(OFTEN).await;
        if torn && pace.now() > calm + plan.lease * MS {
            torn = resize(&plan, &locks).await.is_err();
        }
        for lock in &plan.locks {
            let name = lock.name.as_str();
            // While something is wrong it may fail; it is tried again.
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
        // A name in use as another kind is none.
        resized
            .map(drop)
            .or_else(|error| match error.other_kind() {
                Some(_) => Ok(()),
                None => Err(error),
            })?;
    }
    Ok(())
}
