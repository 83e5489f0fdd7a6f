//! Functions under a lock.

use ::std::time::Duration;

use locktopus::{LockError, Locktopus, LostCause, locked};

/// Names of the attribute do not collide with those of the caller.
#[allow(dead_code, reason = "only in the way")]
mod std {}

struct Shop {
    locks: Locktopus,
    name: &'static str,
}

struct Order {
    shop: u32,
    id: u32,
}

impl Shop {
    async fn new() -> Self {
        let locks = locktopus::connect("memory:").await.unwrap();
        Self { locks, name: "s" }
    }

    #[locked(name = "{self.name}:{order.shop}:{order.id:04}:{{{what:?}}}", locks = self.locks, bind = lease)]
    async fn named(&self, order: &Order, what: &str) -> Result<String, LockError> {
        Ok(lease.name().as_str().to_owned())
    }

    #[locked(name = "outer", locks = self.locks, kind = "fair_lock", bind = outer)]
    async fn outer(&self, mut depth: u32) -> Result<u32, LockError> {
        depth -= 1;
        if depth > 0 {
            return Box::pin(self.outer(depth)).await;
        }
        outer.ensure_valid()?;
        let guard = self.locks.fair_lock("outer").acquire().await?;
        Ok(u32::try_from(guard.hold_count()).unwrap())
    }

    #[locked(name = "m", locks = &self.locks, kind = "mutex")]
    async fn mutex(&self, again: bool) -> Result<(), LockError> {
        if again {
            Box::pin(self.mutex(false)).await?;
        }
        Ok(())
    }

    #[locked(name = "busy", locks = self.locks, when_busy = "error")]
    async fn at_once(&self) -> Result<(), LockError> {
        Ok(())
    }

    #[locked(name = "busy", locks = self.locks, wait = "30ms")]
    async fn patient(&self) -> Result<(), Box<dyn ::std::error::Error + Send + Sync>> {
        Ok(())
    }

    #[locked(name = "busy", locks = self.locks, when_busy = "skip")]
    async fn skipped(&self) -> Result<Option<u32>, LockError> {
        Ok(Some(1))
    }

    #[locked(name = "nightly", locks = self.locks, when_busy = "skip", at_least = "1m", fixed_lease = "1m")]
    async fn nightly(&self) -> Result<Option<u32>, LockError> {
        Ok(Some(1))
    }

    #[locked(name = "spawning", locks = self.locks, wait = "30ms")]
    async fn spawning(&self) -> Result<(), LockError> {
        let lock = self.locks.lock("spawning");
        let spawned = tokio::spawn(async move { lock.try_acquire().await });
        assert!(
            spawned.await.unwrap()?.is_none(),
            "entered by somebody else"
        );
        Ok(())
    }

    #[locked(name = "lost", locks = self.locks, lease = "30s", max_hold = "50ms")]
    async fn lost(&self) -> Result<(), LockError> {
        ::std::future::pending().await
    }
}

#[locked(name = "rw", locks = locks, kind = "read_lock", fixed_lease = "1m 30s", bind = lease)]
async fn reading(locks: &Locktopus) -> Result<Duration, LockError> {
    let remaining = lease.remaining();
    assert!(locks.rw_lock("rw").write().try_acquire().await.is_err());
    Ok(remaining)
}

#[locked(name = "rw", locks = locks, kind = "write_lock")]
async fn writing<T>(locks: &Locktopus, (value, _): (&T, u8)) -> Result<T, LockError>
where
    T: Clone + Send + Sync,
{
    Ok(value.clone())
}

#[locked(name = "s", locks = locks, kind = "semaphore", when_busy = "error")]
async fn permitted(locks: Locktopus) -> Result<Option<i64>, LockError> {
    locks.semaphore("s").available().await
}

#[tokio::test]
async fn names_are_made_of_arguments() {
    let shop = Shop::new().await;
    let order = Order { shop: 7, id: 42 };
    let name = shop.named(&order, "x").await.unwrap();
    assert_eq!(name, "s:7:0042:{\"x\"}");
}

#[tokio::test]
async fn what_a_function_calls_enters_its_lock_again() {
    let shop = Shop::new().await;
    assert_eq!(shop.outer(3).await.unwrap(), 4);
    assert_eq!(shop.locks.held(), 0);
    let ended = shop.mutex(true).await;
    assert!(matches!(ended, Err(LockError::NotReentrant { .. })));
    shop.mutex(false).await.unwrap();
}

#[tokio::test]
async fn a_busy_lock_is_waited_for_an_error_or_skipped() {
    let shop = Shop::new().await;
    assert_eq!(shop.skipped().await.unwrap(), Some(1));
    let guard = shop.locks.lock("busy").acquire().await.unwrap();
    assert!(shop.at_once().await.unwrap_err().is_busy());
    assert_eq!(shop.skipped().await.unwrap(), None);
    let error = shop.patient().await.unwrap_err();
    assert!(error.downcast_ref::<LockError>().unwrap().is_busy());
    guard.release().await.unwrap();
    shop.at_once().await.unwrap();
    shop.patient().await.unwrap();
    // The function is skipped only if another owner holds the lock.
    let _ = shop.locks.shutdown(Duration::from_secs(1)).await;
    let ended = shop.skipped().await;
    assert!(matches!(ended, Err(LockError::ShutDown)), "{ended:?}");
}

#[tokio::test]
async fn what_a_function_spawns_is_somebody_else() {
    Shop::new().await.spawning().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_job_that_ends_early_stays_locked_for_its_time() {
    let shop = Shop::new().await;
    let begun = tokio::time::Instant::now();
    assert_eq!(shop.nightly().await.unwrap(), Some(1));
    assert_eq!(begun.elapsed(), Duration::ZERO);
    tokio::time::sleep(Duration::from_secs(58)).await;
    assert_eq!(shop.nightly().await.unwrap(), None);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(shop.nightly().await.unwrap(), Some(1));
}

#[tokio::test]
async fn a_body_is_dropped_when_its_lock_is_lost() {
    let shop = Shop::new().await;
    let Err(LockError::Lost { cause, .. }) = shop.lost().await else {
        panic!("not lost");
    };
    assert_eq!(cause, LostCause::MaxHold);
}

#[tokio::test]
async fn every_kind_and_lease() {
    let Shop { locks, .. } = Shop::new().await;
    // Sent to another thread, as servers do.
    let elsewhere = {
        let locks = locks.clone();
        tokio::spawn(async move { reading(&locks).await })
    };
    let remaining = elsewhere.await.unwrap().unwrap();
    assert!(remaining > Duration::from_secs(80), "{remaining:?}");
    assert_eq!(writing(&locks, (&5, 0)).await.unwrap(), 5);
    locks.semaphore("s").initialise(2).await.unwrap();
    assert_eq!(permitted(locks.clone()).await.unwrap(), Some(1));
    assert_eq!(locks.semaphore("s").available().await.unwrap(), Some(2));
}
