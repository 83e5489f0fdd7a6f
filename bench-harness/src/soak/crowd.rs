//! A crowd at one lock: all clients wait, then it is released, and all are served.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use locktopus::Locktopus;
use serde::Serialize;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::places::{Kind, Place};
use super::tally::Tally;

/// Between a failed attempt and the next one.
const PAUSE: Duration = Duration::from_millis(50);
/// If serving takes longer, a waiter was forgotten.
const SERVED_WITHIN: Duration = Duration::from_secs(300);

/// The results of the crowds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Crowds {
    /// How often a crowd gathered.
    pub rounds: u64,
    /// Waiters of all of them.
    pub came: u64,
    /// Those that got the lock.
    pub served: u64,
    /// The longest time to serve a whole crowd, in milliseconds.
    pub slowest_ms: u64,
}

/// Gathers crowds until told to stop, each for `gather` before its lock is released. `deserter` is
/// whether one waiter leaves.
pub(super) async fn rounds(
    clients: Arc<[Locktopus]>,
    prefix: &str,
    waiters: usize,
    gather: Duration,
    deserter: bool,
    tally: Arc<Tally>,
    mut stop: watch::Receiver<bool>,
) -> Crowds {
    let mut crowds = Crowds::default();
    let place = Arc::new(Place::new(prefix, "crowd", Kind::Lock, 0));
    loop {
        let since = Instant::now();
        let holder = match place.take(&clients[0]).await {
            Ok(holder) => holder,
            Err(error) => {
                tally.failed(&error, since);
                if *stop.borrow() {
                    return crowds;
                }
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let served = Arc::new(AtomicU64::new(0));
        let mut crowd = JoinSet::new();
        for number in 0..waiters {
            let (clients, place) = (Arc::clone(&clients), Arc::clone(&place));
            let (tally, served) = (Arc::clone(&tally), Arc::clone(&served));
            crowd.spawn(async move {
                let locks = &clients[number % clients.len()];
                while !once(locks, &place, &tally).await {
                    tokio::time::sleep(PAUSE).await;
                }
                served.fetch_add(1, Ordering::Relaxed);
            });
        }
        if deserter {
            let one = crowd.spawn(std::future::pending());
            one.abort();
        }
        tokio::select! {
            () = tokio::time::sleep(gather) => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
        let since = Instant::now();
        if let Err(error) = holder.release().await {
            tally.failed(&error, since);
        }
        let all = async { while crowd.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(SERVED_WITHIN, all).await;
        crowds.rounds += 1;
        crowds.came += (waiters + usize::from(deserter)) as u64;
        crowds.served += served.load(Ordering::Relaxed);
        let took = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        crowds.slowest_ms = crowds.slowest_ms.max(took);
        if *stop.borrow() || crowds.served < crowds.came && !deserter {
            return crowds;
        }
    }
}

/// Takes it without a time limit and releases it at once; returns whether it was granted.
async fn once(locks: &Locktopus, place: &Place, tally: &Tally) -> bool {
    let since = Instant::now();
    match locks.lock(place.name.as_str()).acquire().await {
        Ok(guard) => {
            if place.enter() {
                tally.overlaps.fetch_add(1, Ordering::Relaxed);
            }
            place.leave();
            let since = Instant::now();
            if let Err(error) = guard.release().await {
                tally.failed(&error, since);
            }
            true
        }
        Err(error) => {
            tally.failed(&error, since);
            false
        }
    }
}
