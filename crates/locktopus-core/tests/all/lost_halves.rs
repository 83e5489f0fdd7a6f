//! Readers under a writer's id, when the writer is lost meanwhile.

use crate::common;

use std::time::Duration;

use common::{Fate, Scripted, until};
use locktopus_core::{LockError, WriteGuard};
use tokio::time::{sleep, sleep_until};

const LEASE: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_millis(50);

/// Renewals fail, and the writer's lease ends while the readers' half is granted. Then everything
/// works again.
async fn lost_meanwhile(script: &Scripted) -> WriteGuard {
    let locks = script.locks();
    let write = locks.rw_lock("a").write().renewed_lease(LEASE);
    let writing = write.acquire().await.unwrap();
    script.always("extend", Fate::Refuse);
    sleep_until(writing.valid_until() - MOMENT / 2).await;
    script.next("attempt", [Fate::SlowReply(MOMENT)]);
    let script = script.clone();
    tokio::spawn(async move {
        sleep(MOMENT * 2).await;
        script.always("extend", Fate::Pass);
    });
    writing
}

async fn nothing_is_left(script: &Scripted) {
    until("nothing is held", || script.store.population() == (0, 0)).await;
    // Nothing is left, now or later.
    sleep(Duration::from_secs(90)).await;
    assert_eq!(script.store.population(), (0, 0));
    let renewed = script.calls("extend").len();
    sleep(Duration::from_secs(90)).await;
    assert_eq!(script.calls("extend").len(), renewed, "somebody renews it");
}

#[tokio::test(start_paused = true)]
async fn reading_by_a_writer_that_is_lost_meanwhile_leaves_nothing() {
    let script = Scripted::with_call_timeout(Duration::from_secs(1));
    let writing = lost_meanwhile(&script).await;
    let error = writing.read().await.unwrap_err();
    assert!(matches!(error, LockError::Lost { .. }), "{error}");
    drop(writing);
    nothing_is_left(&script).await;
}

#[tokio::test(start_paused = true)]
async fn a_downgrade_by_a_writer_that_is_lost_meanwhile_leaves_nothing() {
    let script = Scripted::with_call_timeout(Duration::from_secs(1));
    let writing = lost_meanwhile(&script).await;
    let error = LockError::from(writing.downgrade().await.unwrap_err());
    assert!(matches!(error, LockError::Lost { .. }), "{error}");
    nothing_is_left(&script).await;
}
