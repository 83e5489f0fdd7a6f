//! The reaper: gives back in the background what a dropped guard or future left behind.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout_at;

use crate::backend_error::BackendError;
use crate::clock::{self, BootInstant, timer_in};
use crate::kind::LockTarget;
use crate::lease::LeaseState;
use crate::owner::OwnerId;
use crate::request::{ReleaseOutcome, ReleaseRequest};
use crate::services::Services;
use crate::token_retention::TokenRetention;
use crate::wake::lock;

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Something to give back.
#[derive(Debug)]
pub(crate) struct Debt {
    pub(crate) target: LockTarget,
    pub(crate) owner: OwnerId,
    pub(crate) permits: u32,
    /// After this instant the backend has forgotten the lock by itself.
    pub(crate) until: BootInstant,
    /// An attempt may still be on its way and arrive after the release: look once more.
    pub(crate) late_attempt: bool,
    pub(crate) retention: Option<TokenRetention>,
}

impl Services {
    /// Takes over a debt. Never blocks and never panics; without a live runtime the lease lapses instead.
    pub(crate) fn reap(self: &Arc<Self>, debt: Debt) {
        self.reap_then(debt, || ());
    }

    /// As [`reap`](Self::reap), and does `settled` when nothing of the debt is left, unless everything ends before.
    pub(crate) fn reap_then(self: &Arc<Self>, debt: Debt, settled: impl FnOnce() + Send + 'static) {
        let services = Arc::clone(self);
        let settle = async move {
            tokio::select! {
                biased;
                () = services.closed.cancelled() => {}
                () = services.give_back(&debt) => settled(),
            }
        };
        self.tasks.spawn_on(settle, &self.runtime);
    }

    /// What must be given back when a lease ends without an answered release. Its end is not that of its
    /// validity: a renewal whose answer was lost, or one longer than the maximum hold time, keeps the lock
    /// on the server.
    pub(crate) fn debt_of(&self, state: &LeaseState) -> Debt {
        Debt {
            target: state.target.clone(),
            owner: state.owner.clone(),
            permits: state.permits,
            until: clock::now() + state.longest_lease() + self.call_timeout(),
            late_attempt: state.late_attempt,
            retention: state.retention,
        }
    }

    /// Gives back until it is certain that nothing is left, or the lease has ended. Whatever takes time on the way, a server
    /// that is away or a lane that is full, it takes no longer than that.
    async fn give_back(&self, debt: &Debt) {
        let patience = self.call_timeout();
        // After a late attempt each release has the time for its answer, however short the lease.
        let limit = || match debt.late_attempt {
            true => debt.until.max(clock::now() + patience),
            false => debt.until,
        };
        let mut given_back = self.give_back_until(debt, limit()).await;
        if given_back && debt.late_attempt {
            // Whatever this release found, an attempt that was on its way may have come after it.
            tokio::time::sleep(patience).await;
            given_back = self.give_back_until(debt, limit()).await;
        }
        if !given_back {
            tracing::warn!(lock = %debt.target, "background release given up; the lease has ended");
        }
    }

    async fn give_back_until(&self, debt: &Debt, limit: BootInstant) -> bool {
        timeout_at(limit.timer(), self.try_to_give_back(debt, limit)).await == Ok(true)
    }

    /// False: it took until `limit`.
    async fn try_to_give_back(&self, debt: &Debt, limit: BootInstant) -> bool {
        let mut pause = FIRST_PAUSE;
        loop {
            let lane = self.releases.lane(self.backend.shard(&debt.target));
            let permit = lane.acquire().await;
            // Many waited for their turn in the lane until now, and each of them would send one request more.
            if clock::now() >= limit {
                return false;
            }
            let answer = self.give_back_once(debt).await;
            drop(permit);
            match answer {
                Ok(_) => return true,
                Err(error) => {
                    tracing::debug!(lock = %debt.target, %error, "background release failed");
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn give_back_once(&self, debt: &Debt) -> Result<ReleaseOutcome, BackendError> {
        let deadline = timer_in(self.call_timeout());
        self.release(&ReleaseRequest {
            target: debt.target.clone(),
            owner: debt.owner.clone(),
            permits: debt.permits,
            deadline,
            token_retention: debt.retention,
        })
        .await
    }
}

/// Bounds how many background releases are under way at once, so that a burst of drops is no flood. Each
/// shard has a lane of its own: those that wait for a dead node hold up nobody else.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    lanes: Mutex<HashMap<u32, Weak<Semaphore>>>,
}

/// Releases under way in one lane.
const LANE: usize = 64;
/// Forgotten lanes are cleared away when there are this many.
const MANY_LANES: usize = 1024;

impl Lanes {
    fn lane(&self, shard: u32) -> Arc<Semaphore> {
        let mut lanes = lock(&self.lanes);
        if let Some(lane) = lanes.get(&shard).and_then(Weak::upgrade) {
            return lane;
        }
        if lanes.len() >= MANY_LANES {
            lanes.retain(|_, lane| lane.strong_count() > 0);
        }
        let lane = Arc::new(Semaphore::new(LANE));
        lanes.insert(shard, Arc::downgrade(&lane));
        lane
    }
}
