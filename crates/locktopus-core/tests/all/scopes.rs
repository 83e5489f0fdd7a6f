//! Several locks at once for an owner that already holds one of them, and the other way round.

use std::time::Duration;

use locktopus_core::{LockError, Locktopus, MultiLock, Owner};
use locktopus_memory::MemoryBackend;
use tokio::time::timeout;

const HOUR: Duration = Duration::from_secs(3600);

fn locks() -> Locktopus {
    Locktopus::builder(MemoryBackend::new()).build().unwrap()
}

/// Otherwise the owner would wait for itself, for ever.
async fn refused_at_once<T>(what: &str, call: impl Future<Output = Result<T, LockError>>) {
    let outcome = timeout(HOUR, call).await;
    let outcome = outcome.unwrap_or_else(|_| panic!("{what}: it waits for itself"));
    match outcome.map(|_| ()) {
        Err(LockError::NotReentrant { .. } | LockError::UpgradeRefused { .. }) => {}
        other => panic!("{what}: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_holds_one_of_several_locks_is_told() {
    let locks = &locks();
    let several = |name: &'static str| locks.multi(["0", name, "z"]);
    let rw = |name: &'static str| locks.rw_lock(name);
    let scope = Owner::new();
    let work = async {
        let _lock = locks.lock("a").acquire().await?;
        refused_at_once("a lock", several("a").acquire()).await;
        refused_at_once("a lock, one try", several("a").try_acquire()).await;
        let _mutex = locks.mutex("b").acquire().await?;
        let both = MultiLock::new().add(locks.mutex("b")).add(locks.lock("x"));
        refused_at_once("a mutex", both.acquire()).await;
        let _reading = rw("c").read().acquire().await?;
        refused_at_once(
            "reading, to write",
            MultiLock::new().add(rw("c").write()).acquire(),
        )
        .await;
        refused_at_once(
            "reading, to read",
            MultiLock::new().add(rw("c").read()).acquire(),
        )
        .await;
        let _writing = rw("d").write().acquire().await?;
        refused_at_once(
            "writing, to read",
            MultiLock::new().add(rw("d").read()).acquire(),
        )
        .await;
        let _fair = locks.fair_lock("e").acquire().await?;
        refused_at_once(
            "a fair lock",
            MultiLock::new().add(locks.fair_lock("e")).acquire(),
        )
        .await;
        // Other locks do not matter, and nothing of the refused request is left.
        timeout(HOUR, several("other").acquire())
            .await
            .expect("nobody holds them")?
            .release()
            .await
            .unwrap();
        Ok::<_, LockError>(())
    };
    scope.scope(work).await.unwrap();
    assert_eq!(locks.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_held_together_is_its_owners() {
    let locks = &locks();
    let scope = Owner::new();
    let work = async {
        let guard = MultiLock::new()
            .add(locks.lock("a"))
            .add(locks.mutex("b"))
            .add(locks.rw_lock("c").write())
            .acquire()
            .await?;
        refused_at_once("together again", locks.multi(["a"]).acquire()).await;
        refused_at_once("a mutex", locks.mutex("b").acquire()).await;
        let inner = timeout(HOUR, locks.lock("a").acquire()).await;
        let inner = inner.expect("it waits for itself")?;
        assert_eq!(inner.hold_count(), 2);
        inner.release().await?;
        let reading = timeout(HOUR, locks.rw_lock("c").read().acquire()).await;
        reading.expect("it waits for itself")?.release().await?;
        guard.release().await.unwrap();
        locks.multi(["a"]).acquire().await?.release().await.unwrap();
        Ok::<_, LockError>(())
    };
    scope.scope(work).await.unwrap();
}

/// Two acquisitions of one owner at the same time run one after the other.
#[tokio::test(start_paused = true)]
async fn several_locks_and_one_of_them_joined_in_one_scope() {
    let locks = &locks();
    let scope = Owner::new();
    let both = async {
        let one = async { locks.mutex("b").acquire().await?.release().await };
        let several = async {
            let guard = MultiLock::new().add(locks.mutex("b")).add(locks.lock("c"));
            guard.acquire().await?.release().await.unwrap();
            Ok::<_, LockError>(())
        };
        tokio::join!(one, several)
    };
    let (one, several) = timeout(HOUR, scope.scope(both)).await.unwrap();
    one.unwrap();
    several.unwrap();
}

/// A probe that only checks whether the owner is inside must not count as a hold: a guard released
/// at that moment would leave the release to the probe.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn being_told_not_reentrant_is_no_hold() {
    let locks = locks();
    let owner = Owner::new();
    let guard = locks.mutex("a").owner(&owner).acquire().await.unwrap();
    let asking = {
        let (locks, owner) = (locks.clone(), owner.clone());
        tokio::spawn(async move {
            for _ in 0..20_000 {
                let again = locks.mutex("a").owner(&owner).acquire().await;
                assert!(matches!(again, Err(LockError::NotReentrant { .. })));
            }
        })
    };
    while !asking.is_finished() {
        assert_eq!(guard.hold_count(), 1);
    }
    asking.await.unwrap();
    guard.release().await.unwrap();
}
