//! Gives semaphores their number anew where servers may forget it, as an application has to: until then those who wait wait.

use std::sync::Arc;
use std::time::Duration;

use locktopus_core::Locktopus;
use tokio::time::sleep;

use crate::plan::{Kind, Plan};

const OFTEN: Duration = Duration::from_secs(1);

/// Never ends by itself.
pub(crate) async fn keep(plan: Arc<Plan>, locks: Locktopus) {
    if !plan.faults.iter().any(|(_, fault)| fault.forgets()) {
        return;
    }
    loop {
        sleep(OFTEN).await;
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
