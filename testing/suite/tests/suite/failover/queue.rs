//! A contended lock whose queue is lost in a failover.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use locktopus::{FencingToken, LockGuard, Locktopus};
use locktopus_servers::topology::Deployment;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::common::{LONG, SOON, eventually};

const WAITERS: usize = 4;

/// Outlives any failover.
const LEASE: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub(crate) struct Queue {
    locks: Locktopus,
    name: String,
    guard: LockGuard,
    waiters: JoinSet<()>,
    /// In the order of the grants.
    served: Arc<Mutex<Vec<FencingToken>>>,
}

impl Queue {
    pub(crate) async fn of(locks: &Locktopus, waiting: &Locktopus, name: String) -> Self {
        let guard = locks
            .lock(&name)
            .fixed_lease(LEASE)
            .acquire()
            .await
            .unwrap();
        let served = Arc::<Mutex<Vec<_>>>::default();
        let mut waiters = JoinSet::new();
        for _ in 0..WAITERS {
            let (request, served) = (waiting.lock(&name), Arc::clone(&served));
            waiters.spawn(async move {
                let guard = request.acquire().await.unwrap();
                served.lock().unwrap().push(guard.token().unwrap());
                guard.release().await.unwrap();
            });
        }
        let queue = Self {
            locks: locks.clone(),
            name,
            guard,
            waiters,
            served,
        };
        queue.is_there(SOON).await;
        queue
    }

    /// Asynchronous replication may lose the queue and keep the lock. Here it certainly does,
    /// except for what heartbeats restored by the time the primary dies.
    pub(crate) async fn lose(&self, place: &Deployment) {
        let node = place.primary_for(&self.name).await.unwrap();
        let sides = ["queue", "waiters"].map(|side| format!("locktopus_{side}:{{{}}}", self.name));
        let gone = node.command(&["DEL", &sides[0], &sides[1]]).await.unwrap();
        // The notes beside the queue exist only once there were heartbeats to note.
        assert!(["1", "2"].contains(&gone.text().as_str()), "{gone:?}");
    }

    /// All waiters queue again while the lock is still held; then each hands it to the next.
    pub(crate) async fn comes_back_and_is_served(self, since: Instant) -> Duration {
        self.is_there(LONG).await;
        let rebuilt = since.elapsed();
        let before = self.guard.token().unwrap();
        self.guard.release().await.unwrap();
        let all = timeout(SOON, self.waiters.join_all());
        all.await.expect("everybody is served");
        let served = self.served.lock().unwrap();
        assert_eq!(served.len(), WAITERS);
        let tokens: Vec<_> = std::iter::once(&before).chain(served.iter()).collect();
        assert!(tokens.is_sorted_by(|a, b| a < b), "tokens grow: {tokens:?}");
        rebuilt
    }

    async fn is_there(&self, within: Duration) {
        eventually("everybody in the queue", within, async || {
            let state = self.locks.lock(&self.name).inspect().await;
            match state {
                Ok(state) if state.waiters.len() == WAITERS => Ok(()),
                other => Err(other),
            }
        })
        .await;
    }
}
