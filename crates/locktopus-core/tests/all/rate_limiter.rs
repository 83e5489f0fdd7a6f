//! Rate limiters: bounds, and crowds.

use crate::common;

use std::time::Duration;

use common::{Fate, Scripted};
use futures_util::future::join_all;
use locktopus_core::{LockError, LockKind, Locktopus, MAX_SEMAPHORE_PERMITS};
use locktopus_memory::MemoryBackend;
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);

/// Neither of these waits.
#[tokio::test(start_paused = true)]
async fn what_can_never_be_had_is_an_error_at_once() {
    let locks = Locktopus::builder(MemoryBackend::new()).build().unwrap();
    let limiter = locks.rate_limiter("mails");
    for (permits, per) in [
        (MAX_SEMAPHORE_PERMITS + 1, SECOND),
        (1, SECOND / 1_000),
        (1, SECOND * 86_401),
    ] {
        let refused = limiter.initialise(permits, per).await;
        assert!(matches!(refused, Err(LockError::Option(_))), "{refused:?}");
    }
    let never_set = limiter.acquire().await.unwrap_err();
    assert_eq!(never_set.too_few_permits().unwrap().total, None);
    assert!(limiter.initialise(3, SECOND).await.unwrap());
    let none = limiter.acquire_many(0).await;
    assert!(matches!(none, Err(LockError::Option(_))), "{none:?}");
    let too_many = limiter.acquire_many(4).await.unwrap_err();
    assert_eq!(too_many.too_few_permits().unwrap().total, Some(3));
    let told = too_many.to_string();
    assert!(
        told.contains("set_rate") && !told.contains("hold"),
        "{told}"
    );
    let held = locks.of_kind("mails", LockKind::RateLimiter).acquire();
    let held = held.await.unwrap_err();
    assert!(held.to_string().contains("nobody holds a"), "{held}");
    assert_eq!(limiter.available().await.unwrap(), Some(3));
    let _ = locks.shutdown(SECOND).await;
    assert!(matches!(limiter.acquire().await, Err(LockError::ShutDown)));
}

/// Permits are not leases: even with short leases, a slow answer is as good as a quick one.
#[tokio::test(start_paused = true)]
async fn a_slow_answer_spends_once() {
    let script = Scripted::new();
    let locks = script.builder().renewed_lease(SECOND / 20).build().unwrap();
    let limiter = locks.rate_limiter("mails");
    limiter.initialise(2, SECOND * 60).await.unwrap();
    script.always("attempt", Fate::SlowReply(SECOND / 12));
    limiter.acquire().await.unwrap();
    assert_eq!(limiter.available().await.unwrap(), Some(1));
    assert_eq!(script.calls("release").len(), 0);
}

/// Permits come back one after the other, and each goes to the first waiter, in any process.
#[tokio::test(start_paused = true)]
async fn a_crowd_gets_one_permit_a_period_in_order() {
    let store = MemoryBackend::new();
    let build = |backend| Locktopus::builder(backend).build().unwrap();
    let both = [build(store.another_client()), build(store)];
    for per in [SECOND / 50, SECOND * 20] {
        let limiters = both.each_ref().map(|locks| locks.rate_limiter("mails"));
        limiters[0].set_rate(1, per).await.unwrap();
        let begun = Instant::now();
        let crowd = limiters.iter().cycle().take(51).zip(0_u32..);
        let served = join_all(crowd.map(|(limiter, place)| async move {
            limiter.acquire().await.unwrap();
            let (waited, least) = (begun.elapsed(), per * place);
            let most = least + SECOND / 100 * (place + 1);
            assert!(least <= waited && waited <= most, "{place}: {waited:?}");
        }));
        served.await;
        limiters[0].delete().await.unwrap();
    }
}
