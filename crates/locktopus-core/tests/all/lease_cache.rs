//! Lease caching: which leases are kept after a release, for how long, and how others get them.

use crate::common;

use std::time::Duration;

use common::{Fate, Scripted, until};
use locktopus_core::{
    CohortSettings, LockError, LockGuard, LockRequest, Locktopus, LostCause, MutexProfile,
    WaitStrategy,
};
use locktopus_memory::MemoryBackend;
use tokio::time::{Instant, sleep};

const MS: Duration = Duration::from_millis(1);
const LEASE: Duration = Duration::from_secs(30);
const KEEP: Duration = Duration::from_millis(50);
/// The limit for keeping a lease of 30 s.
const LONG: Duration = Duration::from_secs(10);

fn cached(locks: &Locktopus, keep: Duration) -> LockRequest {
    locks.lock("a").lease_cache(keep)
}

async fn once(locks: &Locktopus, keep: Duration) -> LockGuard {
    cached(locks, keep).acquire().await.unwrap()
}

/// Takes the lock and releases it, so that it is kept.
async fn keep(locks: &Locktopus, time: Duration) {
    once(locks, time).await.release().await.unwrap();
    assert_eq!(locks.held_locks()[0].holds, 0, "kept, and held by nobody");
}

fn counts(script: &Scripted) -> (usize, usize) {
    (script.calls("attempt").len(), script.calls("release").len())
}

async fn all_given_back(script: &Scripted, locks: &Locktopus) {
    until("given back", || script.store.population() == (0, 0)).await;
    until("nothing to do", || locks.background_tasks() == 0).await;
    assert_eq!(locks.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_kept_lease_is_taken_again_without_asking() {
    let (script, locks) = Scripted::with_locks();
    for request in [
        locks.lock("a").lease_cache(KEEP),
        locks.mutex("m").lease_cache(KEEP),
    ] {
        let before = counts(&script);
        let mut last = None;
        for round in 0..10 {
            let guard = match round % 2 {
                0 => request.clone().acquire().await.unwrap(),
                _ => request.clone().try_acquire().await.unwrap().unwrap(),
            };
            guard.ensure_valid().unwrap();
            assert!(guard.token() > last, "tokens must grow");
            last = guard.token();
            match round % 3 {
                0 => drop(guard),
                _ => guard.release().await.unwrap(),
            }
        }
        assert_eq!(counts(&script), (before.0 + 1, before.1));
        all_given_back(&script, &locks).await;
        assert_eq!(counts(&script), (before.0 + 1, before.1 + 1));
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_option_nothing_is_kept() {
    let script = Scripted::new();
    let locks = script.builder().lease_cache(KEEP).build().unwrap();
    for request in [
        locks.lock("a").lease_cache(Duration::ZERO),
        locks.fair_lock("f"),
        locks.mutex_as("s", MutexProfile::single_key()),
        locks
            .lock("p")
            .strategy(WaitStrategy::Poll { min: MS, max: KEEP }),
    ] {
        let before = counts(&script);
        request.acquire().await.unwrap().release().await.unwrap();
        assert_eq!(counts(&script), (before.0 + 1, before.1 + 1));
    }
    let before = counts(&script);
    locks.lock("a").await.unwrap().release().await.unwrap();
    assert_eq!(counts(&script), (before.0 + 1, before.1), "the usual");
}

#[tokio::test(start_paused = true)]
async fn the_time_counts_from_the_first_release() {
    let script = Scripted::new();
    let cohort = CohortSettings {
        turns: 1000,
        budget: Duration::ZERO,
    };
    let locks = script.builder().cohort(cohort).build().unwrap();
    let guard = once(&locks, KEEP).await;
    let owner = guard.owner_id().clone();
    sleep(KEEP * 2).await;
    guard.release().await.unwrap();
    let released = Instant::now();
    loop {
        let guard = once(&locks, KEEP).await;
        if *guard.owner_id() != owner {
            assert!(released.elapsed() >= KEEP);
            break guard.release().await.unwrap();
        }
        assert!(released.elapsed() <= KEEP, "kept for longer than allowed");
        sleep(MS).await;
        guard.release().await.unwrap();
        sleep(MS).await;
    }
    all_given_back(&script, &locks).await;
}

#[tokio::test(start_paused = true)]
async fn a_kept_lease_serves_no_more_turns_than_it_has_tokens() {
    let script = Scripted::new();
    let cohort = CohortSettings {
        turns: 4,
        budget: LEASE,
    };
    let locks = script.builder().cohort(cohort).build().unwrap();
    let mut last = None;
    for _ in 0..8 {
        let guard = once(&locks, LONG).await;
        assert!(guard.token() > last);
        last = guard.token();
        guard.release().await.unwrap();
    }
    assert_eq!((counts(&script), locks.held()), ((2, 2), 0));
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_elsewhere_gets_it_at_once() {
    let script = Scripted::new();
    let (locks, other) = (script.locks(), script.other());
    for round in 0..4 {
        keep(&locks, LONG).await;
        let asked = Instant::now();
        let guard = match round % 2 {
            0 => other.lock("a").acquire().await.unwrap(),
            // Without a place in the queue.
            _ => {
                let heartbeat = LEASE;
                let notified = other.lock("a").strategy(WaitStrategy::Notify { heartbeat });
                notified.acquire().await.unwrap()
            }
        };
        assert!(asked.elapsed() < KEEP, "waited {:?}", asked.elapsed());
        guard.release().await.unwrap();
    }
    all_given_back(&script, &locks).await;
}

#[tokio::test(start_paused = true)]
async fn one_attempt_elsewhere_asks_it_back() {
    let script = Scripted::new();
    let (locks, other) = (script.locks(), script.other());
    keep(&locks, LONG).await;
    let asked = Instant::now();
    assert!(other.lock("a").try_acquire().await.unwrap().is_none());
    until("given back", || script.store.population() == (0, 0)).await;
    assert!(other.lock("a").try_acquire().await.unwrap().is_some());
    assert!(asked.elapsed() < KEEP, "waited {:?}", asked.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_others_want_is_not_kept() {
    let script = Scripted::new();
    let (locks, other) = (script.locks(), script.other());
    // Requested elsewhere during the first hold, and during a later one.
    for again in [false, true] {
        if again {
            keep(&locks, LONG).await;
        }
        let guard = once(&locks, LONG).await;
        let waiting = tokio::spawn(other.lock("a").acquire());
        sleep(KEEP).await;
        let before = script.calls("release").len();
        guard.release().await.unwrap();
        assert_eq!(script.calls("release").len(), before + 1);
        waiting.await.unwrap().unwrap().release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn those_who_poll_in_the_same_process_get_it() {
    let locks = Scripted::new().locks();
    keep(&locks, LONG).await;
    let asked = Instant::now();
    let poll = WaitStrategy::Poll { min: MS, max: KEEP };
    let guard = locks.lock("a").strategy(poll).acquire().await.unwrap();
    assert!(asked.elapsed() < KEEP * 4, "waited {:?}", asked.elapsed());
    guard.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_grant_out_of_the_queue_is_not_kept() {
    let store = MemoryBackend::new();
    let [locks, other] =
        [(); 2].map(|()| Locktopus::builder(store.another_client()).build().unwrap());
    let held = other.lock("a").acquire().await.unwrap();
    let waiting = tokio::spawn(cached(&locks, LONG).acquire());
    until("it waits", || store.population().1 > 1).await;
    held.release().await.unwrap();
    let guard = waiting.await.unwrap().unwrap();
    guard.release().await.unwrap();
    assert_eq!((store.population().0, locks.held()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_request_on_other_terms_finds_the_lock_free() {
    let (script, locks) = Scripted::with_locks();
    for trying in [true, false] {
        keep(&locks, LONG).await;
        let other_terms = locks.lock("a").fixed_lease(LONG);
        let guard = if trying {
            other_terms.try_acquire().await.unwrap().expect("free")
        } else {
            let asked = Instant::now();
            let guard = other_terms.acquire().await.unwrap();
            assert!(asked.elapsed() < KEEP, "waited {:?}", asked.elapsed());
            guard
        };
        guard.release().await.unwrap();
        assert_eq!(script.store.population().0, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_of_which_little_is_left_is_not_kept() {
    let (script, locks) = Scripted::with_locks();
    script.always("extend", Fate::Refuse);
    let guard = once(&locks, LONG).await;
    sleep(LEASE * 2 / 3).await;
    guard.release().await.unwrap();
    assert_eq!(counts(&script), (1, 1), "renewal failed");
    script.always("extend", Fate::Pass);
    let guard = once(&locks, LONG).await;
    sleep(LEASE * 2).await;
    guard.release().await.unwrap();
    assert_eq!(
        counts(&script),
        (2, 2),
        "the backend may have forgotten whom to tell"
    );
}

#[tokio::test(start_paused = true)]
async fn an_expired_lease_is_never_handed_out() {
    let locks = Scripted::new().locks();
    let lease = Duration::from_secs(3);
    let request = || locks.lock("a").fixed_lease(lease).lease_cache(lease / 3);
    let guard = request().acquire().await.unwrap();
    let (first, owner) = (guard.valid_until(), guard.owner_id().clone());
    guard.release().await.unwrap();
    loop {
        let guard = request().acquire().await.unwrap();
        if *guard.owner_id() != owner {
            assert!(guard.valid_until() > first);
            break;
        }
        assert_eq!(guard.valid_until(), first, "keeping refreshed a lease");
        guard.release().await.unwrap();
        sleep(MS * 20).await;
    }
    // A lease without renewal serves again only if at most a tenth of it is gone.
    assert!(first.saturating_duration_since(Instant::now()) > lease * 8 / 10);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_lost_while_it_is_kept_is_gone() {
    let (script, locks) = Scripted::with_locks();
    let guard = once(&locks, LONG).await;
    let (owner, token) = (guard.owner_id().clone(), guard.token());
    sleep(LONG / 2).await;
    guard.release().await.unwrap();
    script.store.clear();
    // The renewal due after a third of the lease notices it.
    until("lost", || locks.held() == 0).await;
    let guard = once(&locks, LONG).await;
    assert!(*guard.owner_id() != owner && guard.token() > token);
}

#[tokio::test(start_paused = true)]
async fn an_evicted_lease_is_gone() {
    let script = Scripted::new();
    let (locks, other) = (script.locks(), script.other());
    for by in [&locks, &other] {
        keep(&locks, LONG).await;
        let eviction = by.lock("a").force_release("for a test").await.unwrap();
        assert_eq!(eviction.evicted.len(), 1);
        until("given up", || locks.held() == 0).await;
        let guard = once(&locks, LONG).await;
        assert!(guard.token() > eviction.fence);
        let fence = by.lock("a").force_release("again").await.unwrap().fence;
        if by.held() > 0 {
            assert!(matches!(guard.lost().await, LostCause::Evicted { .. }));
        }
        drop(guard);
        until("given up", || locks.held() == 0).await;
        assert!(once(&locks, LONG).await.token() > fence);
        until("given back", || script.store.population().0 <= 1).await;
        other.lock("a").force_release("the end").await.unwrap();
        until("given up", || locks.held() == 0).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_gives_back() {
    let (script, locks) = Scripted::with_locks();
    keep(&locks, LONG).await;
    locks
        .mutex("m")
        .lease_cache(LONG)
        .run(|_| async {})
        .await
        .unwrap();
    let report = locks.shutdown(Duration::from_secs(1)).await;
    assert_eq!((report.abandoned, script.store.population()), (0, (0, 0)));
    assert!(matches!(
        cached(&locks, LONG).acquire().await,
        Err(LockError::ShutDown)
    ));
}

#[tokio::test(start_paused = true)]
async fn a_release_after_a_shutdown_keeps_nothing() {
    let (script, locks) = Scripted::with_locks();
    let guard = once(&locks, LONG).await;
    let report = locks.shutdown(Duration::from_secs(1)).await;
    assert_eq!(report.abandoned, 0);
    let released = guard.release().await;
    assert!(
        matches!(released, Err(LockError::Lost { ref cause, .. }) if *cause == LostCause::ShutDown),
        "{released:?}"
    );
    assert_eq!(script.store.population(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn when_everything_is_dropped_it_goes_back_in_time() {
    let (script, locks) = Scripted::with_locks();
    keep(&locks, KEEP).await;
    drop(locks);
    let dropped = Instant::now();
    until("given back", || script.store.population() == (0, 0)).await;
    assert!(dropped.elapsed() < KEEP * 2, "{:?}", dropped.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_message_that_may_be_lost_ends_the_keeping() {
    let (script, locks) = Scripted::with_locks();
    let group = script.deafen();
    keep(&locks, LONG).await;
    let disturbed = Instant::now();
    group.resync();
    all_given_back(&script, &locks).await;
    assert!(disturbed.elapsed() < KEEP, "{:?}", disturbed.elapsed());
    // The same while it is held.
    let guard = once(&locks, LONG).await;
    group.resync();
    guard.release().await.unwrap();
    assert_eq!(locks.held(), 0);
}

#[tokio::test(start_paused = true)]
async fn without_ears_nothing_is_kept() {
    let (script, locks) = Scripted::with_locks();
    script.always("subscribe", Fate::Refuse);
    once(&locks, LONG).await.release().await.unwrap();
    assert_eq!((counts(&script), locks.held()), ((1, 1), 0));
}

#[tokio::test(start_paused = true)]
async fn a_grant_whose_first_answer_was_lost_is_not_kept() {
    let (script, locks) = Scripted::with_locks();
    script.next("attempt", [Fate::LoseReply]);
    let guard = once(&locks, LONG).await;
    assert_eq!(script.calls("attempt").len(), 2);
    guard.release().await.unwrap();
    assert!(!script.calls("release").is_empty());
    all_given_back(&script, &locks).await;
}

#[tokio::test(start_paused = true)]
async fn a_ticket_takes_the_lease_out() {
    let script = Scripted::new();
    let (locks, other) = (script.locks(), script.other());
    keep(&locks, LONG).await;
    let guard = once(&locks, LONG).await;
    let token = guard.token();
    let ticket = guard.into_ticket().unwrap();
    assert_eq!(locks.held(), 0);
    let adopted = other.lock("a").adopt(&ticket).await.unwrap();
    assert_eq!(adopted.token(), token);
    assert!(cached(&locks, LONG).try_acquire().await.unwrap().is_none());
    adopted.release().await.unwrap();
    all_given_back(&script, &other).await;
}

#[tokio::test(start_paused = true)]
async fn a_maximum_hold_is_for_one_holder() {
    let (script, locks) = Scripted::with_locks();
    let guard = cached(&locks, LONG).max_hold(KEEP).acquire().await.unwrap();
    guard.release().await.unwrap();
    sleep(KEEP * 2).await;
    let guard = once(&locks, LONG).await;
    sleep(KEEP * 2).await;
    guard.ensure_valid().unwrap();
    assert_eq!(counts(&script), (1, 0));
    guard.release().await.unwrap();
    let guard = cached(&locks, LONG).max_hold(KEEP).acquire().await.unwrap();
    assert_eq!(guard.lost().await, LostCause::MaxHold);
    drop(guard);
    all_given_back(&script, &locks).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_held_is_shown_apart_from_what_is_kept() {
    let locks = Scripted::new().locks();
    let guard = once(&locks, LONG).await;
    let again = guard.reenter().unwrap();
    let [held] = locks.held_locks().try_into().unwrap();
    assert_eq!((held.holds, held.token), (2, guard.token()));
    drop((guard, again));
    let [kept] = locks.held_locks().try_into().unwrap();
    assert_eq!((kept.holds, locks.held()), (0, 1));
    let state = locks.lock("a").inspect().await.unwrap();
    assert!(state.holder().is_some(), "the backend still has it");
    let guard = once(&locks, LONG).await;
    let [held] = locks.held_locks().try_into().unwrap();
    assert_eq!((held.holds, held.token), (1, guard.token()));
}

#[tokio::test(start_paused = true)]
async fn impossible_wishes_are_refused_before_anything_is_sent() {
    let (script, locks) = Scripted::with_locks();
    let poll = WaitStrategy::Poll { min: MS, max: KEEP };
    let profile = MutexProfile::single_key();
    for request in [
        cached(&locks, LONG + MS),
        cached(&locks, LONG).fixed_lease(LONG),
        cached(&locks, KEEP).strategy(poll),
        locks.fair_lock("f").lease_cache(KEEP),
        locks.mutex_as("s", profile).lease_cache(KEEP),
    ] {
        let text = format!("{request:?}");
        let refused = request.acquire().await;
        let Err(LockError::Option(error)) = refused else {
            panic!("{text}: {refused:?}");
        };
        assert!(error.to_string().contains("lease_cache"), "{error}");
    }
    let alone = CohortSettings {
        turns: 1,
        ..CohortSettings::default()
    };
    for builder in [
        script.builder().lease_cache(LONG + MS),
        script.builder().lease_cache(KEEP).cohort(alone),
    ] {
        assert!(matches!(builder.build(), Err(LockError::Option(_))));
    }
    assert_eq!(
        (counts(&script), script.calls("subscribe").len()),
        ((0, 0), 0)
    );
}
