//! A lock held by others: told apart from failures, and the same for every way to acquire.

use crate::common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{Fate, Scripted};
use locktopus_core::{CancellationToken, Locktopus, LostCause, UnlessBusy as _};
use locktopus_core::{LockError, LockRequest};
use locktopus_memory::MemoryBackend;

const SOON: Duration = Duration::from_millis(100);

fn request(locks: &Locktopus) -> LockRequest {
    locks.lock("a").wait_at_most(SOON)
}

#[tokio::test(start_paused = true)]
async fn whichever_way_it_was_asked_for_it_is_none() {
    let locks = Locktopus::builder(MemoryBackend::new()).build().unwrap();
    let held = locks.lock("a").acquire().await.unwrap();
    let begun = AtomicBool::new(false);
    let work = |_| async { begun.store(true, Ordering::Relaxed) };
    assert!(request(&locks).try_acquire().await.unwrap().is_none());
    assert!(request(&locks).try_run(work).await.unwrap().is_none());
    let waited = request(&locks).acquire().await;
    assert!(waited.unless_busy().unwrap().is_none());
    let waited = request(&locks).run(work).await;
    assert!(waited.unless_busy().unwrap().is_none());
    let several = locks.multi(["b", "a"]).wait_at_most(SOON).acquire().await;
    assert!(several.unless_busy().unwrap().is_none());
    assert!(!begun.load(Ordering::Relaxed), "work without the lock");
    held.release().await.unwrap();
    assert_eq!(
        request(&locks).try_run(|_| async { 42 }).await.unwrap(),
        Some(42)
    );
    assert!(request(&locks).try_acquire().await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn failures_are_not_busy() {
    let script = Scripted::with_call_timeout(SOON / 10);
    let locks = script.locks();
    let held = script.other().lock("a").acquire().await.unwrap();
    let stop = CancellationToken::new();
    stop.cancel();
    let cancelled = request(&locks).cancel_on(stop).acquire().await.unwrap_err();
    assert!(!cancelled.is_busy(), "{cancelled}");
    // Held as before, but the last attempts got no answer.
    script.next("attempt", vec![Fate::LoseReply; 100]);
    let silent = request(&locks).acquire().await.unwrap_err();
    assert!(matches!(silent, LockError::WaitTimeout { .. }), "{silent}");
    assert!(!silent.is_busy(), "{silent}");
    let said = silent.to_string();
    assert!(
        said.starts_with("lock \"a\" could not be taken within "),
        "{said}"
    );
    let failed = request(&locks).acquire().await.unless_busy();
    assert!(failed.is_err());
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn work_under_a_lock_that_is_lost_is_dropped() {
    let locks = Locktopus::builder(MemoryBackend::new()).build().unwrap();
    let short = locks.lock("a").fixed_lease(SOON);
    let lost = short.try_run(|_| std::future::pending::<()>()).await;
    assert!(
        matches!(
            lost,
            Err(LockError::Lost {
                cause: LostCause::Expired,
                ..
            })
        ),
        "{lost:?}"
    );
}
