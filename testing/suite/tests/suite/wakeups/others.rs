//! Waiters that cannot join our queue, like Redisson's clients: they only hear announcements.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use locktopus_servers::topology::TopologyKind;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::common::raw::Raw;
use crate::common::{
    HANDED, HANDED_LEASE, LONG, SOON, close_both, eventually, locks_apart, unique,
};
use crate::wakeups::{At, channel, waiting};

/// Redisson's script to acquire a free lock, without re-entry.
const TAKE: &str = "if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end \
     redis.call('HSET', KEYS[1], ARGV[1], 1) redis.call('PEXPIRE', KEYS[1], 30000) return 1";

/// Its owner id: a uuid and the number of a thread.
const STRANGER: &str = "ffffffff-ffff-4fff-8fff-ffffffffffff:1";

/// Ours hand the lock on without a pause, and the stranger still gets it.
pub(crate) async fn get_their_turn((place, client): At) -> String {
    let name = unique("others");
    let (a, b) = (
        locks_apart(&place, client).await,
        locks_apart(&place, client).await,
    );
    let (stop, turns) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicUsize::new(0)),
    );
    let mut tasks = JoinSet::new();
    for locks in [&a, &b, &a, &b] {
        let request = locks.lock(&name).strategy(HANDED).fixed_lease(HANDED_LEASE);
        let (stop, turns) = (Arc::clone(&stop), Arc::clone(&turns));
        tasks.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let guard = request.clone().acquire().await.unwrap();
                guard.release().await.unwrap();
                turns.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    eventually("all of ours at it", SOON, async || {
        let done = turns.load(Ordering::Relaxed);
        (done > 20).then_some(()).ok_or(done)
    })
    .await;
    let node = place.primary_for(&name).await.unwrap();
    let (mut listener, mut taker) = (Raw::to(node).await, Raw::to(node).await);
    let sharded = matches!(place.kind(), TopologyKind::Cluster { .. });
    let (subscribe, publish) = match sharded {
        true => ("SSUBSCRIBE", "SPUBLISH"),
        false => ("SUBSCRIBE", "PUBLISH"),
    };
    listener.say(&[subscribe, &channel(&name)]).await;
    let begun = Instant::now();
    let mut heard = 0;
    loop {
        listener.hear().await;
        heard += 1;
        // It may come too late: the lock is left to it only for some time.
        let took = taker.say(&["EVAL", TAKE, "1", &name, STRANGER]).await;
        if took.int() == 1 {
            break;
        }
        assert!(begun.elapsed() < LONG, "heard {heard} times");
    }
    let took = begun.elapsed();
    // Ours wait for it like for any holder, and continue when it announces its release.
    waiting(&a, &name, 4).await;
    taker.say(&["DEL", &name]).await;
    taker.say(&[publish, &channel(&name), "0"]).await;
    stop.store(true, Ordering::Relaxed);
    timeout(SOON, tasks.join_all()).await.expect("ours go on");
    close_both(a, b).await;
    format!("after {took:.2?} and {heard} announcements, among {turns:?} turns of ours")
}
