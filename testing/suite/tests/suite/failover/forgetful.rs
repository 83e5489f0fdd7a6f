//! The server loses its scripts, or all its data.

use std::time::Duration;

use locktopus::LostCause;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::common::{SOON, close, eventually, locks, locks_apart, unique};
use crate::failover::At;
use crate::failover::holder::Holder;

const TASKS: usize = 8;
const TURNS: usize = 40;
const WAITERS: usize = 3;

pub(crate) async fn scripts((place, client): At) -> String {
    let locks = locks(&place, client).await;
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let (locks, name) = (locks.clone(), unique("flushed"));
        tasks.spawn(async move {
            for _ in 0..TURNS {
                let guard = locks.lock(&name).acquire().await.unwrap();
                guard.extend(SOON * 10).await.unwrap();
                guard.release().await.unwrap();
            }
        });
    }
    let mut flushed = 0;
    while !tasks.is_empty() {
        place.nodes()[0]
            .command(&["SCRIPT", "FLUSH"])
            .await
            .unwrap();
        flushed += 1;
        while let Some(done) = tasks.try_join_next() {
            done.unwrap();
        }
    }
    assert!(flushed > 3, "{flushed}");
    close(locks).await;
    format!(
        "{} operations while scripts were flushed {flushed} times",
        TASKS * TURNS * 3
    )
}

pub(crate) async fn everything((place, client): At) -> String {
    let locks = locks_apart(&place, client).await;
    let lease = Duration::from_millis(900);
    let holder = Holder::of(&locks, unique("forgotten"), lease).await;
    // Waiters of another lock, which is not acquired again: its queue must recover alone.
    let queued = unique("queue-forgotten");
    let first = locks.lock(&queued).acquire().await.unwrap();
    let mut waiters = JoinSet::new();
    for _ in 0..WAITERS {
        let request = locks.lock(&queued);
        waiters.spawn(async move { request.acquire().await.unwrap().release().await.unwrap() });
    }
    let all_wait = async || {
        let state = locks.lock(&queued).inspect().await.unwrap();
        (state.waiters.len() == WAITERS).then_some(()).ok_or(state)
    };
    eventually("waiters in the queue", SOON, all_wait).await;
    let begun = Instant::now();
    place.nodes()[0].command(&["FLUSHALL"]).await.unwrap();
    let cause = holder.loses(SOON).await;
    let noticed = begun.elapsed();
    assert_eq!(cause, LostCause::Missing);
    // The next renewal notices it, before the lease has expired.
    assert!(Instant::now() < holder.guard.valid_until(), "{noticed:?}");
    let next = locks.lock(&holder.name).acquire().await.unwrap();
    assert!(
        next.token().unwrap() > holder.token,
        "tokens grow without the counter"
    );
    next.release().await.unwrap();
    drop(holder);
    // The lock that they waited for is gone too, so their heartbeats find it free.
    timeout(SOON, waiters.join_all()).await.expect("served");
    let served = begun.elapsed();
    assert!(first.release().await.is_err(), "it was lost");
    close(locks).await;
    format!("noticed after {noticed:.2?}, all waiters served after {served:.2?}")
}
