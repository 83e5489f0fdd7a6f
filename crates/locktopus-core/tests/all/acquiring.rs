//! Acquiring despite trouble: lost answers, late arrivals, silence, limits.

use crate::common;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use common::{Fate, Scripted, until};
use futures_util::FutureExt as _;
use locktopus_core::{
    AcquireAttempt, AttemptOutcome, BackendError, CancellationToken, DynBackend, LockBackend,
    LockError, Locktopus, Phase, WaitStrategy,
};
use locktopus_memory::MemoryBackend;
use tokio::time::{Instant, sleep, timeout};

const CALL: Duration = Duration::from_millis(100);

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_asked_for_again() {
    let (script, locks) = Scripted::with_locks();
    script.next("attempt", [Fate::LoseReply, Fate::LoseReply]);
    let guard = locks.lock("a").acquire().await.unwrap();
    let attempts = script.calls("attempt");
    assert_eq!(attempts.len(), 3);
    assert!(
        attempts
            .iter()
            .all(|call| call.owners == attempts[0].owners),
        "a new owner blocks itself"
    );
    let state = locks.lock("a").inspect().await.unwrap();
    let holder = state.holder().unwrap();
    assert_eq!((holder.holds, &holder.owner), (1, guard.owner_id()));
    assert_eq!(state.last_token, guard.token());
    guard.release().await.unwrap();
    assert_eq!(script.store.population(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn every_acquisition_has_an_owner_of_its_own() {
    let (script, locks) = Scripted::with_locks();
    for _ in 0..3 {
        let passing = locks.lock("a").acquire().await.unwrap();
        passing.release().await.unwrap();
    }
    let attempts = script.calls("attempt");
    assert!(attempts[0].owners != attempts[1].owners && attempts[1].owners != attempts[2].owners);
}

#[tokio::test(start_paused = true)]
async fn a_grant_whose_validity_is_spent_is_given_back() {
    let lease = Duration::from_millis(500);
    let script = Scripted::with_call_timeout(lease * 4);
    let locks = script.locks();
    script.next("attempt", [Fate::SlowReply(lease * 2)]);
    let guard = locks.lock("a").fixed_lease(lease).acquire().await.unwrap();
    guard.ensure_valid().unwrap();
    let attempts = script.calls("attempt");
    assert_ne!(attempts[0].owners, attempts[1].owners);
    assert_eq!(guard.owner_id(), &attempts[1].owners[0]);
    assert!(
        guard.valid_until() <= attempts[1].at + lease,
        "counted from the answer"
    );
}

#[tokio::test(start_paused = true)]
async fn validity_counts_from_the_sending() {
    let lease = Duration::from_secs(2);
    let script = Scripted::with_call_timeout(lease);
    let locks = script.locks();
    script.next("attempt", [Fate::SlowReply(lease / 2)]);
    let sent = Instant::now();
    let guard = locks.lock("a").fixed_lease(lease).acquire().await.unwrap();
    assert!(sent.elapsed() >= lease / 2);
    assert!(guard.valid_until() < sent + lease);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_arrives_after_its_release_is_cleaned_up() {
    let (script, locks) = Scripted::with_locks();
    script.next("attempt", [Fate::Late(CALL / 2)]);
    let request = locks.lock("a").acquire();
    assert!(
        timeout(CALL / 4, request).await.is_err(),
        "cut while the attempt is on its way"
    );
    until("the first release", || script.calls("release").len() == 1).await;
    assert_eq!(
        script.store.population().0,
        0,
        "the release overtook the attempt"
    );
    until("the late arrival", || script.store.population().0 == 1).await;
    until("the second release", || script.store.population().0 == 0).await;
    assert_eq!(script.calls("release").len(), 2);
    until("nothing is left to do", || locks.background_tasks() == 0).await;
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_put_up_with_for_a_while() {
    let script = Scripted::new();
    let locks = script
        .builder()
        .tolerate_outage(Duration::from_secs(4))
        .build()
        .unwrap();
    script.always("attempt", Fate::Refuse);
    let begun = Instant::now();
    let outcome = locks.lock("a").acquire().await;
    let Err(LockError::Backend {
        phase: Phase::Acquire,
        source,
        ..
    }) = outcome
    else {
        panic!("{outcome:?}")
    };
    assert!(source.is_transient());
    let patience = begun.elapsed();
    assert!(
        patience >= Duration::from_secs(4) && patience < Duration::from_secs(5),
        "{patience:?}"
    );
    let tries = script.calls("attempt").len();
    assert!((20..=200).contains(&tries), "{tries} tries in four seconds");

    // An outage that ends in time is not noticed; a permanent refusal is an error at once.
    script.next("attempt", [Fate::Refuse; 10]);
    script.always("attempt", Fate::Pass);
    drop(locks.lock("a").acquire().await.unwrap());
    script.always("attempt", Fate::Deny);
    let begun = Instant::now();
    assert!(matches!(
        locks.lock("b").acquire().await,
        Err(LockError::Backend { .. })
    ));
    assert!(begun.elapsed() < Duration::from_millis(5));
}

#[tokio::test(start_paused = true)]
async fn a_try_tells_an_outage_at_once() {
    let (script, locks) = Scripted::with_locks();
    script.always("attempt", Fate::Refuse);
    let begun = Instant::now();
    assert!(matches!(
        locks.lock("a").try_acquire().await,
        Err(LockError::Backend { .. })
    ));
    assert!(begun.elapsed() < Duration::from_millis(5));
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_in_time_though_the_backend_hangs() {
    for hanging in ["attempt", "subscribe"] {
        let script = Scripted::with_call_timeout(Duration::from_secs(60));
        let locks = script.locks();
        let _holder = script.other().lock("a").acquire().await.unwrap();
        script.always(hanging, Fate::Hang);
        let wait = Duration::from_millis(700);
        let begun = Instant::now();
        let outcome = locks.lock("a").wait_at_most(wait).acquire().await;
        let took = begun.elapsed();
        assert!(
            matches!(outcome, Err(LockError::WaitTimeout { .. })),
            "{hanging}: {outcome:?}"
        );
        assert!(took >= wait && took < wait + CALL, "{hanging}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_try_ends_in_time_though_the_backend_hangs() {
    let (script, locks) = Scripted::with_locks();
    script.always("attempt", Fate::Hang);
    let begun = Instant::now();
    assert!(locks.lock("a").try_acquire().await.is_err());
    assert!(begun.elapsed() <= CALL * 2);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_token_ends_the_wait_and_nothing_else() {
    let (script, locks) = Scripted::with_locks();
    let holder = locks.lock("a").acquire().await.unwrap();
    let token = CancellationToken::new();
    let waiter = tokio::spawn(locks.lock("a").cancel_on(token.clone()).into_future());
    sleep(CALL).await;
    token.cancel();
    let outcome = waiter.await.unwrap();
    assert!(
        matches!(outcome, Err(LockError::Cancelled { .. })),
        "{outcome:?}"
    );
    holder.ensure_valid().unwrap();
    let request = locks.lock("b").cancel_on(CancellationToken::new());
    let held = request.acquire().await.unwrap();
    held.ensure_valid().unwrap();
    let outcome = locks.lock("c").cancel_on(token).acquire().await;
    assert!(
        matches!(outcome, Err(LockError::Cancelled { .. })),
        "cancelled before it began"
    );
    until("no waiter stays", || script.store.population() == (2, 0)).await;
}

#[tokio::test(start_paused = true)]
async fn waiters_are_woken_one_by_one_in_their_order() {
    let script = Scripted::new();
    let notify = WaitStrategy::Notify {
        heartbeat: Duration::from_secs(3600),
    };
    let locks = script
        .builder()
        .strategy(notify)
        .renewed_lease(Duration::from_secs(86_400))
        .build()
        .unwrap();
    let holder = locks.lock("a").acquire().await.unwrap();
    let order = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut waiters = Vec::new();
    for i in 0..20 {
        let (request, order) = (locks.lock("a"), order.clone());
        waiters.push(tokio::spawn(async move {
            let guard = request.acquire().await.unwrap();
            order.lock().unwrap().push(i);
            guard.release().await.unwrap();
        }));
        sleep(Duration::from_millis(1)).await;
    }
    let before = script.calls("attempt").len();
    let begun = Instant::now();
    holder.release().await.unwrap();
    for waiter in waiters {
        waiter.await.unwrap();
    }
    assert_eq!(*order.lock().unwrap(), (0..20).collect::<Vec<_>>());
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "somebody slept until the heartbeat"
    );
    let attempts = script.calls("attempt").len() - before;
    assert!(
        attempts <= 20,
        "{attempts} attempts for 20 grants: more than one waiter was woken at a time"
    );
}

#[tokio::test(start_paused = true)]
async fn a_waiter_without_hints_polls() {
    let (script, locks) = Scripted::with_locks();
    let holder = locks.lock("a").acquire().await.unwrap();
    script.always("subscribe", Fate::Deny);
    let waiter = tokio::spawn(locks.lock("a").into_future());
    sleep(Duration::from_secs(1)).await;
    holder.release().await.unwrap();
    let guard = timeout(Duration::from_millis(200), waiter).await;
    drop(guard.unwrap().unwrap().unwrap());
}

#[tokio::test(start_paused = true)]
async fn an_attempt_under_way_at_a_shutdown_is_given_back() {
    let (script, locks) = Scripted::with_locks();
    script.next("attempt", [Fate::SlowReply(CALL / 2)]);
    let waiter = tokio::spawn(locks.lock("a").into_future());
    until("the attempt ran", || script.store.population().0 == 1).await;
    let report = locks.shutdown(Duration::from_secs(5)).await;
    assert_eq!(report.abandoned, 0);
    assert!(matches!(waiter.await.unwrap(), Err(LockError::ShutDown)));
    assert_eq!(
        script.store.population().0,
        0,
        "a lock that nobody holds stays behind"
    );
}

/// A backend whose `Locktopus` is shut down, as by another thread, when an attempt reaches it.
#[derive(Debug)]
struct ClosedMeanwhile {
    inner: MemoryBackend,
    locks: OnceLock<Locktopus>,
}

#[async_trait]
impl locktopus_core::Layer for ClosedMeanwhile {
    fn inner(&self) -> &dyn LockBackend {
        &self.inner
    }

    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
        if let Some(locks) = self.locks.get() {
            let _begun = locks.shutdown(Duration::ZERO).now_or_never();
        }
        self.inner.close().await;
        self.inner.attempt(attempt).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_a_shutdown_closes_under_an_attempt_is_no_error_of_the_backend() {
    let backend = Arc::new(ClosedMeanwhile {
        inner: MemoryBackend::new(),
        locks: OnceLock::new(),
    });
    let locks = Locktopus::builder_dyn(Arc::clone(&backend) as DynBackend)
        .build()
        .unwrap();
    backend.locks.set(locks.clone()).unwrap();
    let answer = locks.lock("a").acquire().await;
    assert!(matches!(answer, Err(LockError::ShutDown)), "{answer:?}");
}

#[tokio::test(start_paused = true)]
async fn impossible_options_are_refused_before_anything_is_sent() {
    let (script, locks) = Scripted::with_locks();
    let huge = WaitStrategy::Notify {
        heartbeat: Duration::MAX,
    };
    let requests = [
        locks.lock("a").fixed_lease(Duration::from_millis(19)),
        locks.lock("a").fixed_lease(Duration::MAX),
        locks.lock("a").renewed_lease(Duration::ZERO),
        locks.lock("a").max_hold(Duration::ZERO),
        locks.lock("a").strategy(huge),
    ];
    for request in requests {
        let text = format!("{request:?}");
        let outcome = request.acquire().await;
        assert!(
            matches!(outcome, Err(LockError::Option(_))),
            "{text}: {outcome:?}"
        );
    }
    for name in ["", &"x".repeat(2000)] {
        assert!(matches!(
            locks.lock(name).acquire().await,
            Err(LockError::Name(_))
        ));
    }
    assert!(script.calls("attempt").is_empty());
    // A limit that is never reached is no limit.
    drop(
        locks
            .lock("a")
            .wait_at_most(Duration::MAX)
            .max_hold(Duration::MAX)
            .acquire()
            .await
            .unwrap(),
    );
}
