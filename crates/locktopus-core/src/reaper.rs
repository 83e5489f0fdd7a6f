//! The reaper: gives back in the background what a dropped guard or future left behind.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::clock;
use crate::kind::LockTarget;
use crate::owner::OwnerId;
use crate::request::{ReleaseOutcome, ReleaseRequest};
use crate::services::Services;

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Something to give back.
#[derive(Debug)]
pub(crate) struct Debt {
    pub(crate) target: LockTarget,
    pub(crate) owner: OwnerId,
    /// After this instant the backend has forgotten the lock by itself.
    pub(crate) until: Instant,
    /// An attempt may still be on its way and arrive after the release: look once more.
    pub(crate) late_attempt: bool,
}

impl Services {
    /// Takes over a debt. Never blocks and never panics; without a live runtime the lease lapses instead.
    pub(crate) fn reap(self: &Arc<Self>, debt: Debt) {
        let services = Arc::clone(self);
        self.tasks
            .spawn_on(async move { services.settle(debt).await }, &self.runtime);
    }

    async fn settle(self: Arc<Self>, debt: Debt) {
        tokio::select! {
            biased;
            () = self.closed.cancelled() => {}
            () = self.give_back(&debt) => {}
        }
    }

    async fn give_back(&self, debt: &Debt) {
        let mut pause = FIRST_PAUSE;
        let mut look_again = debt.late_attempt;
        while clock::now() < debt.until {
            let answer = {
                let Ok(_permit) = self.releases.acquire().await else {
                    return;
                };
                self.backend
                    .release(&ReleaseRequest {
                        target: debt.target.clone(),
                        owner: debt.owner.clone(),
                        deadline: Instant::now() + self.call_timeout(),
                    })
                    .await
            };
            match answer {
                Ok(ReleaseOutcome::NotHeld) if look_again => {
                    look_again = false;
                    tokio::time::sleep(self.call_timeout()).await;
                }
                Ok(_) => return,
                Err(error) if error.is_transient() => {
                    tracing::debug!(lock = %debt.target, %error, "background release failed, will try again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(error) => {
                    tracing::warn!(lock = %debt.target, %error, "background release failed; the lease will lapse");
                    return;
                }
            }
        }
    }
}
