//! Leader election: one leader at a time, notice of its end, and a loop that campaigns again.

use crate::common;

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use common::{Fate, Scripted, until};
use locktopus_core::{
    BackendErrorKind, CancellationToken, FencingToken, LockError, Locktopus, LostCause, Owner,
};
use locktopus_recipes::LeaderElection;
use tokio::time::{Instant, sleep};

const LEASE: Duration = Duration::from_secs(3);

/// Tokens of the terms that began work.
type Terms = Arc<Mutex<Vec<FencingToken>>>;

fn candidate(locks: &Locktopus) -> LeaderElection {
    LeaderElection::new(locks, "l")
}

/// Leads for ever, and notes each term.
fn lead(locks: &Locktopus, terms: &Terms) -> tokio::task::JoinHandle<Result<(), LockError>> {
    let (election, terms) = (candidate(locks).renewed_lease(LEASE), Arc::clone(terms));
    tokio::spawn(async move {
        election
            .run(|lease| {
                terms.lock().unwrap().push(lease.token().unwrap());
                std::future::pending()
            })
            .await
    })
}

fn count(terms: &Terms) -> usize {
    terms.lock().unwrap().len()
}

#[tokio::test(start_paused = true)]
async fn the_next_candidate_leads_when_the_leader_resigns() {
    let backend = Scripted::new();
    let (here, there) = (backend.locks(), backend.other());
    let first = candidate(&here).campaign().await.unwrap();
    assert!(candidate(&there).try_campaign().await.unwrap().is_none());
    let next = {
        let election = candidate(&there);
        tokio::spawn(async move { election.campaign().await.unwrap() })
    };
    let election = candidate(&here);
    let incumbent = loop {
        let seen = election.observe().await.unwrap().unwrap();
        if seen.candidates == 1 {
            break seen;
        }
        sleep(Duration::from_millis(1)).await;
    };
    assert_eq!(Some(incumbent.mark), first.mark());
    assert!(incumbent.is_here);
    assert!(first.is_leading());
    let (token, lease) = (first.token().unwrap(), first.lease());
    first.resign().await.unwrap();
    assert_eq!(lease.lost().await, LostCause::Released);
    let second = next.await.unwrap();
    assert!(second.token().unwrap() > token);
    let seen = candidate(&here).observe().await.unwrap().unwrap();
    assert_eq!(Some(seen.mark), second.mark());
    assert!(!seen.is_here);
    drop(second);
    until("the dropped leader resigned", || there.held() == 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_knows_before_the_next_one_leads() {
    let backend = Scripted::new();
    let (here, there) = (backend.locks(), backend.other());
    let first = candidate(&here).renewed_lease(LEASE).campaign().await;
    let first = first.unwrap();
    backend.always("extend", Fate::Refuse);
    backend.always("release", Fate::Refuse);
    let next = tokio::spawn(async move {
        let second = candidate(&there).campaign().await.unwrap();
        (Instant::now(), second.token())
    });
    let cause = first.leading().await;
    let knew = Instant::now();
    assert!(matches!(cause, LostCause::Unreachable { .. }), "{cause:?}");
    assert!(!first.is_leading());
    assert_eq!((first.mark(), first.remaining()), (None, Duration::ZERO));
    let (led, token) = next.await.unwrap();
    assert!(knew < led, "two at once");
    assert!(token > first.token());
    assert!(first.resign().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn the_loop_campaigns_again_after_a_loss() {
    let backend = Scripted::new();
    let (locks, terms) = (backend.locks(), Terms::default());
    let leader = lead(&locks, &terms);
    until("a term", || count(&terms) == 1).await;
    for lost in 1..4 {
        locks.mutex("l").force_release("test").await.unwrap();
        until("the next term", || count(&terms) == lost + 1).await;
    }
    assert!(terms.lock().unwrap().is_sorted_by(|a, b| a < b));
    let _ = locks.shutdown(LEASE).await;
    let ended = leader.await.unwrap();
    assert!(matches!(ended, Err(LockError::ShutDown)), "{ended:?}");
}

/// A leader that loses again and again does not campaign in a tight loop. After a long term, the
/// pauses start small again.
#[tokio::test(start_paused = true)]
async fn losses_in_a_row_are_followed_by_growing_pauses_until_a_term_lasts() {
    let backend = Scripted::new();
    let (locks, terms) = (backend.locks(), Terms::default());
    let leader = lead(&locks, &terms);
    until("a term", || count(&terms) == 1).await;
    let next_term = async |so_far: usize| {
        let begun = Instant::now();
        locks.mutex("l").force_release("test").await.unwrap();
        until("the next term", || count(&terms) > so_far).await;
        begun.elapsed()
    };
    for lost in 1..6 {
        next_term(lost).await;
    }
    let pause = next_term(6).await;
    assert!(pause >= Duration::from_millis(900), "{pause:?}");
    sleep(Duration::from_secs(6)).await;
    let pause = next_term(7).await;
    assert!(pause <= Duration::from_millis(200), "{pause:?}");
    leader.abort();
}

/// A program that caches its leases does not delay the next leader.
#[tokio::test(start_paused = true)]
async fn a_leader_that_resigned_keeps_no_lease() {
    let backend = Scripted::new();
    let keeping = backend.builder().lease_cache(LEASE).build().unwrap();
    let first = candidate(&keeping).campaign().await.unwrap();
    first.resign().await.unwrap();
    let next = candidate(&backend.other()).try_campaign().await.unwrap();
    assert!(next.is_some());
}

#[tokio::test(start_paused = true)]
async fn errors_that_pass_are_waited_out_with_growing_pauses() {
    let backend = Scripted::new();
    let patience = Duration::from_millis(1);
    let locks = backend.builder().tolerate_outage(patience).build().unwrap();
    backend.always("attempt", Fate::Refuse);
    let (terms, begun) = (Terms::default(), Instant::now());
    let leader = lead(&locks, &terms);
    sleep(Duration::from_secs(60)).await;
    let attempts = backend.calls("attempt").len();
    assert!((30..=200).contains(&attempts), "{attempts} in a minute");
    backend.always("attempt", Fate::Pass);
    until("a term", || count(&terms) == 1).await;
    assert!(begun.elapsed() < Duration::from_secs(63));
    leader.abort();
    assert!(leader.await.unwrap_err().is_cancelled());
    until("it resigned", || locks.held() == 0).await;
}

#[tokio::test(start_paused = true)]
async fn errors_that_do_not_pass_end_the_loop() {
    let backend = Scripted::new();
    backend.always("attempt", Fate::Deny);
    let ended = lead(&backend.locks(), &Terms::default());
    let ended = tokio::time::timeout(LEASE * 100, ended).await;
    let ended = ended.unwrap().unwrap();
    let Err(LockError::Backend { source, .. }) = ended else {
        panic!("{ended:?}");
    };
    assert_eq!(source.kind(), BackendErrorKind::Denied);
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_the_work_and_resigns() {
    let backend = Scripted::new();
    let (locks, stop) = (backend.locks(), CancellationToken::new());
    let election = candidate(&locks).cancel_on(stop.clone());
    let dropped = Arc::new(());
    let working = Arc::clone(&dropped);
    let leader = tokio::spawn(async move {
        let work = |_| {
            let working = Arc::clone(&working);
            async move {
                std::future::pending::<()>().await;
                drop(working);
            }
        };
        election.run(work).await
    });
    until("it leads", || Arc::strong_count(&dropped) == 3).await;
    stop.cancel();
    let ended = leader.await.unwrap();
    assert!(
        matches!(ended, Err(LockError::Cancelled { .. })),
        "{ended:?}"
    );
    assert_eq!(Arc::strong_count(&dropped), 1, "the work goes on");
    let other = candidate(&backend.other()).try_campaign().await.unwrap();
    assert!(other.is_some(), "it did not resign");
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_a_campaign_and_a_pause_at_once() {
    let backend = Scripted::new();
    let (here, there) = (backend.locks(), backend.other());
    let incumbent = candidate(&there).campaign().await.unwrap();
    let stop = CancellationToken::new();
    let campaigning = {
        let election = candidate(&here).cancel_on(stop.clone());
        tokio::spawn(async move { election.run(|_| std::future::ready(())).await })
    };
    sleep(Duration::from_millis(10)).await;
    stop.cancel();
    let ended = tokio::time::timeout(LEASE, campaigning).await.unwrap();
    assert!(matches!(ended, Ok(Err(LockError::Cancelled { .. }))));
    incumbent.resign().await.unwrap();

    let stop = CancellationToken::new();
    let impatient = backend.builder().tolerate_outage(Duration::ZERO);
    let election = candidate(&impatient.build().unwrap()).cancel_on(stop.clone());
    backend.always("attempt", Fate::Refuse);
    let pausing = tokio::spawn(async move { election.run(|_| std::future::ready(())).await });
    sleep(Duration::from_secs(20)).await;
    let attempts = backend.calls("attempt").len();
    until("the next pause", || {
        backend.calls("attempt").len() > attempts
    })
    .await;
    sleep(Duration::from_millis(100)).await;
    let begun = Instant::now();
    stop.cancel();
    let ended = pausing.await.unwrap();
    assert!(
        matches!(ended, Err(LockError::Cancelled { .. })),
        "{ended:?}"
    );
    assert!(begun.elapsed() < Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_is_dropped_leaves_no_place_behind() {
    let backend = Scripted::new();
    let (here, there) = (backend.locks(), backend.other());
    let leadership = candidate(&there).campaign().await.unwrap();
    let election = candidate(&here);
    let campaign = tokio::time::timeout(LEASE, election.campaign()).await;
    assert!(campaign.is_err(), "two lead");
    until("nothing is under way", || here.background_tasks() == 0).await;
    assert_eq!(election.observe().await.unwrap().unwrap().candidates, 0);
    leadership.resign().await.unwrap();
    assert!(election.observe().await.unwrap().is_none());
}

/// An owner may enter its own locks again, but two candidates of one owner are still two.
#[tokio::test(start_paused = true)]
async fn candidates_of_one_owner_do_not_lead_together() {
    let locks = Scripted::new().locks();
    Owner::new()
        .scope(async {
            let first = candidate(&locks).campaign().await.unwrap();
            assert!(candidate(&locks).try_campaign().await.unwrap().is_none());
            first.resign().await.unwrap();
        })
        .await;
}

/// A stopped process continues: its clock says that the lease is over, and none of its tasks has
/// noticed yet.
#[tokio::test]
async fn work_takes_no_step_after_the_lease_is_over() {
    let locks = Scripted::new().locks();
    let election = candidate(&locks).max_term(Duration::from_millis(500));
    let steps = AtomicUsize::new(0);
    let leadership = election.campaign().await.unwrap();
    let work = leadership.while_leading(std::future::poll_fn(|_| {
        steps.fetch_add(1, Ordering::SeqCst);
        while !leadership.remaining().is_zero() {
            std::thread::park_timeout(leadership.remaining());
        }
        Poll::<()>::Pending
    }));
    let mut work = pin!(work);
    // By hand, so that nothing else on this runtime can run between the two.
    let mut context = Context::from_waker(Waker::noop());
    assert!(work.as_mut().poll(&mut context).is_pending());
    let ended = work.as_mut().poll(&mut context);
    let Poll::Ready(Err(LockError::Lost { cause, .. })) = ended else {
        panic!("{ended:?}");
    };
    assert_eq!(cause, LostCause::MaxHold);
    assert_eq!(steps.load(Ordering::SeqCst), 1);
}
