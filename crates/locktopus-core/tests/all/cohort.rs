//! The cohort: locks passed on inside a process, rule by rule.

use crate::common;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use common::{Fate, Scripted, until};
use locktopus_core::{
    CohortSettings, FencingToken, LockBackend, LockError, LockGuard, Locktopus, LostCause,
    TokenRetention, TokenSource, WaitStrategy,
};
use locktopus_memory::MemoryBackend;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

const PATIENCE: Duration = Duration::from_millis(50);
const LEASE: Duration = Duration::from_secs(30);

type Acquiring = Pin<Box<dyn Future<Output = Result<LockGuard, LockError>> + Send>>;

fn acquiring(locks: &Locktopus) -> Acquiring {
    Box::pin(locks.lock("a").acquire())
}

/// Polls once, without a task to wake.
fn poll(future: &mut Acquiring) -> Poll<Result<LockGuard, LockError>> {
    future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
}

fn queue(locks: &Locktopus) -> Acquiring {
    let mut future = acquiring(locks);
    assert!(poll(&mut future).is_pending());
    future
}

fn got(future: &mut Acquiring) -> LockGuard {
    match poll(future) {
        Poll::Ready(Ok(guard)) => guard,
        other => panic!("not its turn: {other:?}"),
    }
}

fn with(script: &Scripted, turns: u32, budget: Duration) -> Locktopus {
    let cohort = CohortSettings { turns, budget };
    script.builder().cohort(cohort).build().unwrap()
}

fn scripted(turns: u32, budget: Duration) -> (Scripted, Locktopus) {
    let script = Scripted::new();
    let locks = with(&script, turns, budget);
    (script, locks)
}

/// As most tests begin: with a lock that a task holds, or another process.
async fn held() -> (Scripted, Locktopus, LockGuard) {
    let (script, locks) = scripted(64, LEASE);
    let guard = acquiring(&locks).await.unwrap();
    (script, locks, guard)
}

async fn held_elsewhere() -> (MemoryBackend, Locktopus, Locktopus, LockGuard) {
    let store = MemoryBackend::new();
    let (locks, remote) = (memory(&store, 64, LEASE), memory(&store, 64, LEASE));
    let guard = acquiring(&remote).await.unwrap();
    (store, locks, remote, guard)
}

fn memory(store: &MemoryBackend, turns: u32, budget: Duration) -> Locktopus {
    let cohort = CohortSettings { turns, budget };
    Locktopus::builder(store.another_client())
        .cohort(cohort)
        .build()
        .unwrap()
}

/// Tasks that take the lock, record their token, hold it for a while and release it.
fn workers(
    locks: &Locktopus,
    tasks: usize,
    rounds: usize,
    hold: Duration,
) -> (Vec<JoinHandle<()>>, Arc<Mutex<Vec<FencingToken>>>) {
    let tokens = Arc::new(Mutex::new(Vec::new()));
    let work = |_| {
        let (locks, tokens) = (locks.clone(), Arc::clone(&tokens));
        tokio::spawn(async move {
            for _ in 0..rounds {
                let guard = locks.lock("a").acquire().await.unwrap();
                tokens.lock().unwrap().push(guard.token().unwrap());
                if hold.is_zero() {
                    tokio::task::yield_now().await; // others arrive meanwhile
                } else {
                    sleep(hold).await;
                }
                guard.release().await.unwrap();
            }
        })
    };
    ((0..tasks).map(work).collect(), tokens)
}

async fn finish(tasks: Vec<JoinHandle<()>>) {
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_serves_as_many_turns_as_allowed_each_with_a_token_of_its_own() {
    let (script, locks) = scripted(16, LEASE);
    let (tasks, tokens) = workers(&locks, 8, 20, Duration::ZERO);
    finish(tasks).await;
    let tokens = tokens.lock().unwrap();
    assert_eq!(tokens.len(), 160);
    assert!(
        tokens.windows(2).all(|pair| pair[0] < pair[1]),
        "tokens must grow from turn to turn"
    );
    assert_eq!(
        script.calls("attempt").len(),
        1 + 10,
        "one attempt for the eight turns of a leader that was alone, then one for sixteen"
    );
    assert_eq!(script.calls("release").len(), 11);
    assert_eq!(script.store.population(), (0, 0));
    assert_eq!((locks.held(), locks.background_tasks()), (0, 0));
}

/// Twenty tasks arrive while a single one holds the lock. That one reserved few tokens or, if the
/// backend counts tokens, as many as the allowed turns.
#[tokio::test(start_paused = true)]
async fn one_alone_reserves_few_tokens_unless_they_are_counted() {
    for (source, leases) in [(TokenSource::Clock, 2), (TokenSource::Count, 1)] {
        let script = Scripted::new().saying(|info| info.tokens = source);
        let locks = with(&script, 64, LEASE);
        let alone = locks.lock("a").acquire().await.unwrap();
        let (tasks, _) = workers(&locks, 20, 1, Duration::ZERO);
        sleep(PATIENCE).await; // time stands still until all of them wait
        alone.release().await.unwrap();
        finish(tasks).await;
        let granted = script.calls("attempt").len();
        assert_eq!(granted, leases, "{source:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn two_that_take_turns_have_whole_leases_after_the_first() {
    let script = Scripted::new();
    // The task that gives a lease back is busy with that when the other one asks for the next.
    for call in ["attempt", "release"] {
        script.always(call, Fate::SlowReply(Duration::from_millis(1)));
    }
    let locks = with(&script, 16, LEASE);
    let (tasks, _) = workers(&locks, 2, 84, Duration::ZERO);
    finish(tasks).await;
    assert_eq!(
        script.calls("attempt").len(),
        1 + 10,
        "eight turns, then sixteen each: a leader that follows a lease that was used up has company"
    );
    assert_eq!((locks.held(), locks.background_tasks()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn the_time_budget_counts_before_the_turns() {
    let (script, locks) = scripted(1000, Duration::from_millis(20));
    let (tasks, _) = workers(&locks, 4, 10, Duration::from_millis(8));
    finish(tasks).await;
    // Turns begin at 0, 8 and 16 ms; the fourth would begin after the budget.
    assert_eq!(script.calls("attempt").len(), 14);
}

#[tokio::test(start_paused = true)]
async fn the_time_budget_includes_giving_back() {
    let (script, locks) = scripted(1000, Duration::from_millis(20));
    // Whole milliseconds, as timers have no finer resolution.
    let (tasks, _) = workers(&locks, 4, 10, Duration::from_millis(19));
    finish(tasks).await;
    // A second turn would begin at 19 ms, and the rest of the budget is for giving back.
    assert_eq!(script.calls("attempt").len(), 40);
}

#[tokio::test(start_paused = true)]
async fn one_turn_means_no_cohort() {
    let store = MemoryBackend::new();
    let locks = memory(&store, 1, LEASE);
    let first = acquiring(&locks).await.unwrap();
    let waiting: Vec<_> = (0..5).map(|_| queue(&locks)).collect();
    assert!(store.population().1 >= 5, "every waiter asks by itself");
    drop((first, waiting));
    until("nothing is left", || store.population() == (0, 0)).await;
}

#[tokio::test(start_paused = true)]
async fn one_of_a_process_waits_at_the_backend() {
    let (store, locks, remote, held) = held_elsewhere().await;
    let (tasks, _) = workers(&locks, 100, 1, Duration::ZERO);
    let state = || async { remote.lock("a").inspect().await.unwrap() };
    while state().await.waiters.is_empty() {
        sleep(Duration::from_millis(1)).await;
    }
    sleep(Duration::from_secs(5)).await;
    assert_eq!(state().await.waiters.len(), 1);
    held.release().await.unwrap();
    finish(tasks).await;
    assert_eq!(store.population(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn turns_come_in_order_of_arrival() {
    let (_, locks, mut holder) = held().await;
    let mut waiting: Vec<_> = (0..10).map(|_| queue(&locks)).collect();
    for index in 0..10 {
        holder.release().await.unwrap();
        let ready: Vec<bool> = waiting[index + 1..]
            .iter_mut()
            .map(|later| poll(later).is_ready())
            .collect();
        assert!(!ready.contains(&true), "{index} was overtaken");
        holder = got(&mut waiting[index]);
    }
    holder.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_remote_waiter_waits_for_the_budget_and_one_hold() {
    let store = MemoryBackend::new();
    let (budget, hold) = (Duration::from_millis(20), Duration::from_millis(3));
    let locks = memory(&store, 10_000, budget);
    let remote = memory(&store, 10_000, budget);
    let (tasks, _) = workers(&locks, 8, 200, hold);
    sleep(Duration::from_millis(7)).await;
    for _ in 0..20 {
        let begun = Instant::now();
        let guard = acquiring(&remote).await.unwrap();
        assert!(
            begun.elapsed() <= budget + hold + Duration::from_millis(1),
            "waited {:?}",
            begun.elapsed()
        );
        guard.release().await.unwrap();
        sleep(Duration::from_millis(1)).await;
    }
    finish(tasks).await;
}

#[tokio::test(start_paused = true)]
async fn a_future_dropped_with_the_lock_in_its_slot_passes_it_on() {
    let (script, locks, holder) = held().await;
    let (first, mut second) = (queue(&locks), queue(&locks));
    let third = queue(&locks);
    holder.release().await.unwrap();
    drop(third);
    assert!(poll(&mut second).is_pending(), "the first one has it");
    drop(first);
    let guard = got(&mut second);
    assert_eq!(script.calls("attempt").len(), 1);
    assert_eq!(script.calls("release").len(), 0);
    drop(guard);
    until("given back", || script.store.population() == (0, 0)).await;
    until("nothing to do", || locks.background_tasks() == 0).await;
}

#[tokio::test(start_paused = true)]
async fn the_last_one_dropped_with_the_lock_in_its_slot_gives_it_back() {
    let (script, locks, holder) = held().await;
    let only = queue(&locks);
    drop(holder);
    drop(only);
    assert_eq!(locks.held(), 0);
    until("given back", || script.store.population() == (0, 0)).await;
    until("nothing to do", || locks.background_tasks() == 0).await;
    assert_eq!(script.calls("release").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_not_fetched_is_revoked_and_its_task_queues_again() {
    let (script, locks, holder) = held().await;
    let mut asleep = queue(&locks);
    let next = tokio::spawn(acquiring(&locks));
    tokio::task::yield_now().await;
    let granted = Instant::now();
    holder.release().await.unwrap();
    let guard = next.await.unwrap().unwrap();
    let late = granted.elapsed();
    assert!(
        late >= PATIENCE && late <= PATIENCE + Duration::from_millis(5),
        "{late:?}"
    );
    assert!(
        poll(&mut asleep).is_pending(),
        "two holders: a revoked turn was taken"
    );
    guard.release().await.unwrap();
    let guard = got(&mut asleep);
    assert_eq!(script.calls("attempt").len(), 1);
    guard.release().await.unwrap();
    assert_eq!(script.store.population(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_nobody_else_wants_is_given_back_when_revoked() {
    let (script, locks, holder) = held().await;
    let mut asleep = queue(&locks);
    holder.release().await.unwrap();
    until("given back", || script.store.population().0 == 0).await;
    assert_eq!(locks.held(), 0);
    assert!(poll(&mut asleep).is_ready());
}

#[tokio::test(start_paused = true)]
async fn validity_is_inherited_and_never_refreshed_by_passing() {
    let (script, locks) = scripted(10_000, Duration::from_secs(3600));
    script.always("extend", Fate::Refuse);
    let mut guard = acquiring(&locks).await.unwrap();
    let valid_until = guard.valid_until();
    let owner = guard.owner_id().clone();
    let mut passed = 0;
    loop {
        let mut next = queue(&locks);
        sleep(Duration::from_millis(2500)).await;
        guard.release().await.unwrap();
        sleep(Duration::from_millis(1)).await;
        guard = timeout(LEASE, &mut next).await.unwrap().unwrap();
        if guard.owner_id() != &owner {
            break;
        }
        passed += 1;
        assert_eq!(guard.valid_until(), valid_until);
    }
    // A lease with less than half of its validity left is not passed on: the next task gets its
    // own.
    assert!((5..=6).contains(&passed), "{passed}");
    assert!(guard.valid_until() > valid_until);
    guard.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn renewal_goes_on_while_the_lease_is_passed_on() {
    let (script, locks) = scripted(10_000, Duration::from_secs(3600));
    let (tasks, _) = workers(&locks, 3, 200, Duration::from_millis(100));
    finish(tasks).await;
    let attempts = script.calls("attempt").len();
    assert_eq!(
        attempts, 2,
        "eight turns, then nearly sixty seconds of turns"
    );
    let renewals = script.calls("extend").len();
    assert!((5..=8).contains(&renewals), "{renewals}");
    assert_eq!(script.store.population(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_passed_only_to_those_who_asked_for_the_same() {
    let (_, locks) = scripted(64, LEASE);
    let lock = || locks.lock("a");
    let ten = Duration::from_secs(10);
    for (first, second, same) in [
        (lock(), lock(), true),
        (lock().fixed_lease(ten), lock().fixed_lease(ten), true),
        (lock(), lock().fixed_lease(LEASE), false),
        (lock().fixed_lease(LEASE), lock(), false),
        (lock().fixed_lease(ten), lock().fixed_lease(ten * 2), false),
        (
            lock().renewed_lease(ten),
            lock().renewed_lease(ten * 2),
            false,
        ),
    ] {
        let text = format!("{first:?} then {second:?}");
        let guard = first.acquire().await.unwrap();
        let owner = guard.owner_id().clone();
        let next = tokio::spawn(second.acquire());
        tokio::task::yield_now().await;
        guard.release().await.unwrap();
        let next = next.await.unwrap().unwrap();
        assert_eq!(next.owner_id() == &owner, same, "{text}");
        next.release().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_explicit_lease_is_passed_on_while_it_is_as_good_as_new() {
    let (_, locks) = scripted(64, LEASE);
    let ten = Duration::from_secs(10);
    let take = || tokio::spawn(locks.lock("a").fixed_lease(ten).acquire());
    let guard = take().await.unwrap().unwrap();
    let (owner, valid_until) = (guard.owner_id().clone(), guard.valid_until());
    let next = take();
    sleep(Duration::from_millis(500)).await;
    guard.release().await.unwrap();
    let guard = next.await.unwrap().unwrap();
    assert_eq!(
        (guard.owner_id(), guard.valid_until()),
        (&owner, valid_until)
    );
    let next = take();
    sleep(Duration::from_millis(1000)).await;
    guard.release().await.unwrap();
    let guard = next.await.unwrap().unwrap();
    assert_ne!(guard.owner_id(), &owner);
    assert!(guard.remaining() > ten * 9 / 10);
}

#[tokio::test(start_paused = true)]
async fn a_loss_is_told_to_the_holder_and_sends_the_others_to_the_backend() {
    let (script, locks, first) = held().await;
    let owner = first.owner_id().clone();
    let second = tokio::spawn(acquiring(&locks));
    let third = tokio::spawn(acquiring(&locks));
    tokio::task::yield_now().await;
    first.release().await.unwrap();
    let second = second.await.unwrap().unwrap();
    assert_eq!(second.owner_id(), &owner);
    script.store.clear();
    assert_eq!(second.lost().await, LostCause::Missing);
    assert!(second.ensure_valid().is_err());
    // The third task need not wait for the second one to notice.
    let third = timeout(Duration::from_secs(1), third).await.unwrap();
    let third = third.unwrap().unwrap();
    assert_ne!(third.owner_id(), &owner);
    assert!(third.token() > second.token());
    assert!(matches!(
        second.release().await,
        Err(LockError::Lost {
            cause: LostCause::Missing,
            ..
        })
    ));
    third.ensure_valid().unwrap();
    third.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lease_lost_before_it_is_fetched_is_not_fetched() {
    let (_, locks, first) = held().await;
    let owner = first.owner_id().clone();
    let mut next = queue(&locks);
    first.release().await.unwrap();
    locks.lock("a").force_release("test").await.unwrap();
    let guard = next.as_mut().await.unwrap();
    assert_ne!(guard.owner_id(), &owner);
    guard.ensure_valid().unwrap();
    guard.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_maximum_hold_time_is_its_members_own() {
    let (script, locks) = scripted(64, LEASE);
    let limit = Duration::from_secs(2);
    let limited = || locks.lock("a").max_hold(limit);
    let first = limited().acquire().await.unwrap();
    let second = tokio::spawn(acquiring(&locks));
    sleep(limit / 2).await;
    first.release().await.unwrap();
    let second = second.await.unwrap().unwrap();
    let third = tokio::spawn(limited().acquire());
    sleep(limit * 2).await;
    second.ensure_valid().unwrap();
    assert!(second.remaining() > limit * 2, "the limit was inherited");
    second.release().await.unwrap();
    let begun = Instant::now();
    let third = third.await.unwrap().unwrap();
    assert_eq!(script.calls("attempt").len(), 1);
    assert!(third.remaining() <= limit);
    let fourth = tokio::spawn(acquiring(&locks));
    assert_eq!(third.lost().await, LostCause::MaxHold);
    assert!(begun.elapsed() >= limit && begun.elapsed() < limit * 2);
    // The lease has expired, so it is given back although its holder hangs.
    let fourth = timeout(Duration::from_secs(1), fourth).await.unwrap();
    fourth.unwrap().unwrap().release().await.unwrap();
    assert!(third.release().await.is_err());
    until("nothing is left", || script.store.population() == (0, 0)).await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_gives_up_leaves_its_place_to_the_next() {
    let (store, locks, remote, held) = held_elsewhere().await;
    let waiters = || async { remote.lock("a").inspect().await.unwrap().waiters };
    let leader = tokio::spawn(
        locks
            .lock("a")
            .wait_at_most(Duration::from_millis(500))
            .acquire(),
    );
    while waiters().await.is_empty() {
        sleep(Duration::from_millis(1)).await;
    }
    let place = waiters().await[0].owner.clone();
    let follower = tokio::spawn(acquiring(&locks));
    let third = memory(&store, 64, LEASE);
    let behind = tokio::spawn(acquiring(&third));
    sleep(Duration::from_millis(100)).await;
    assert!(matches!(
        leader.await.unwrap(),
        Err(LockError::WaitTimeout { .. })
    ));
    sleep(Duration::from_secs(2)).await;
    assert_eq!(waiters().await[0].owner, place);
    held.release().await.unwrap();
    let guard = follower.await.unwrap().unwrap();
    assert_eq!(guard.owner_id(), &place);
    assert!(!behind.is_finished());
    guard.release().await.unwrap();
    behind.await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_last_one_to_leave_takes_the_place_away() {
    let (store, locks, _, held) = held_elsewhere().await;
    let limited = |millis| {
        let limit = Duration::from_millis(millis);
        tokio::spawn(locks.lock("a").wait_at_most(limit).acquire())
    };
    let waiting: Vec<_> = [300, 500, 400, 700].map(limited).into();
    for waiter in waiting {
        let outcome = waiter.await.unwrap();
        assert!(matches!(outcome, Err(LockError::WaitTimeout { .. })));
    }
    until("no place is left", || store.population() == (1, 0)).await;
    until("nothing to do", || locks.background_tasks() == 0).await;
    held.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_shows_no_life_is_deposed() {
    let (store, locks, _, held) = held_elsewhere().await;
    let mut stalled = queue(&locks);
    let follower = tokio::spawn(acquiring(&locks));
    sleep(Duration::from_secs(10)).await;
    held.release().await.unwrap();
    let guard = timeout(Duration::from_secs(1), follower).await.unwrap();
    let guard = guard.unwrap().unwrap();
    assert!(poll(&mut stalled).is_pending(), "two holders");
    guard.release().await.unwrap();
    let guard = timeout(Duration::from_secs(1), stalled).await.unwrap();
    guard.unwrap().release().await.unwrap();
    until("nothing is left", || store.population() == (0, 0)).await;
    until("nothing to do", || locks.background_tasks() == 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_a_stalled_leader_is_granted_comes_free() {
    let (store, locks, _, held) = held_elsewhere().await;
    let stalled = queue(&locks);
    let follower = tokio::spawn(acquiring(&locks));
    sleep(Duration::from_secs(1)).await;
    held.release().await.unwrap();
    // The grant was pushed to a task that does not run. Without the check it would last for the
    // whole lease.
    let guard = timeout(Duration::from_secs(4), follower).await.unwrap();
    drop((guard.unwrap().unwrap(), stalled));
    until("nothing is left", || store.population() == (0, 0)).await;
    until("nothing to do", || locks.background_tasks() == 0).await;
}

#[tokio::test(start_paused = true)]
async fn tokens_of_a_stalled_leader_are_kept_as_it_asked() {
    let (script, locks) = scripted(64, LEASE);
    let asking = || locks.lock("a").token_retention(TokenRetention::Forever);
    let remote = with(&script, 64, LEASE);
    let held = acquiring(&remote).await.unwrap();
    let mut stalled: Acquiring = Box::pin(asking().acquire());
    assert!(poll(&mut stalled).is_pending());
    let follower = tokio::spawn(asking().wait_at_most(LEASE).acquire());
    until("it is deposed", || !script.calls("release").is_empty()).await;
    assert_eq!(script.retentions()[0], Some(TokenRetention::Forever));
    held.release().await.unwrap();
    follower.await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_outage_is_told_to_all_who_waited_long_enough() {
    let script = Scripted::new();
    let patience = Duration::from_secs(4);
    let locks = script.builder().tolerate_outage(patience).build().unwrap();
    script.always("attempt", Fate::Hang);
    let begun = Instant::now();
    let waiting: Vec<_> = (0..50).map(|_| tokio::spawn(acquiring(&locks))).collect();
    sleep(patience / 2).await;
    let late = tokio::spawn(acquiring(&locks));
    for waiter in waiting {
        let outcome = waiter.await.unwrap();
        assert!(matches!(outcome, Err(LockError::Backend { .. })));
        let waited = begun.elapsed();
        assert!(waited >= patience && waited < patience + Duration::from_secs(1));
    }
    assert!(matches!(
        late.await.unwrap(),
        Err(LockError::Backend { .. })
    ));
    assert!(begun.elapsed() < patience * 2);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_ends_before_its_grant_is_told_fails_nobody_else() {
    let script = Scripted::new();
    let patience = Duration::from_secs(1);
    let locks = script.builder().tolerate_outage(patience).build().unwrap();
    let short = Duration::from_millis(40);
    script.always("attempt", Fate::SlowReply(2 * short));
    let hopeless = tokio::spawn(locks.lock("a").fixed_lease(short).acquire());
    tokio::task::yield_now().await;
    let waiter = tokio::spawn(acquiring(&locks));
    let outcome = hopeless.await.unwrap();
    assert!(matches!(outcome, Err(LockError::Backend { .. })));
    waiter.await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_try_knows_without_asking_that_a_member_holds_the_lock() {
    let (script, locks, guard) = held().await;
    assert!(locks.lock("a").try_acquire().await.unwrap().is_none());
    assert_eq!(script.calls("attempt").len(), 1);
    guard.release().await.unwrap();
    let guard = locks.lock("a").try_acquire().await.unwrap().unwrap();
    // A lease from a try is passed on like any other.
    let mut next = queue(&locks);
    guard.release().await.unwrap();
    got(&mut next).release().await.unwrap();
    assert_eq!(script.calls("attempt").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_panics_passes_on() {
    let (script, locks, guard) = held().await;
    let mut next = queue(&locks);
    let work = tokio::spawn(async move {
        let _guard = guard;
        panic!("as the test wants");
    });
    assert!(work.await.unwrap_err().is_panic());
    got(&mut next).release().await.unwrap();
    assert_eq!(script.calls("attempt").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_ticket_takes_the_lease_out_of_the_line() {
    let (script, locks, first) = held().await;
    let mut second = queue(&locks);
    let third = tokio::spawn(acquiring(&locks));
    tokio::task::yield_now().await;
    first.release().await.unwrap();
    let second = got(&mut second);
    let token = second.token();
    let ticket = second.into_ticket().unwrap();
    sleep(Duration::from_secs(1)).await;
    assert!(!third.is_finished());
    let adopted = script.other().lock("a").adopt(&ticket).await.unwrap();
    assert_eq!(adopted.token(), token);
    adopted.release().await.unwrap();
    let third = third.await.unwrap().unwrap();
    assert!(third.token() > token);
    third.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn reentry_keeps_the_turn_and_a_successor_is_not_its_predecessor() {
    let (_, locks) = scripted(64, LEASE);
    let me = locktopus_core::Owner::new();
    let outer = locks.lock("a").owner(&me).acquire().await.unwrap();
    let inner = locks.lock("a").owner(&me).acquire().await.unwrap();
    let mut next = queue(&locks);
    outer.release().await.unwrap();
    assert!(poll(&mut next).is_pending());
    let lease = inner.lease();
    inner.release().await.unwrap();
    let next = got(&mut next);
    assert!(matches!(
        lease.ensure_valid(),
        Err(LockError::Lost {
            cause: LostCause::Released,
            ..
        })
    ));
    let again = locks.lock("a").owner(&me).try_acquire().await.unwrap();
    assert!(again.is_none(), "entered the successor's turn");
    next.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_extension_is_the_sessions() {
    let (_, locks, guard) = held().await;
    let before = guard.valid_until();
    let after = guard.extend(LEASE * 3).await.unwrap();
    assert!(after >= before + LEASE);
    // The next task did not ask for such a long lease, so it gets its own.
    let next = tokio::spawn(acquiring(&locks));
    tokio::task::yield_now().await;
    let owner = guard.owner_id().clone();
    guard.release().await.unwrap();
    let next = next.await.unwrap().unwrap();
    assert_ne!(next.owner_id(), &owner);
    next.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_every_wait_and_leaves_nothing() {
    let store = MemoryBackend::new();
    let locks = memory(&store, 64, LEASE);
    let holder = acquiring(&locks).await.unwrap();
    let mut fetched = queue(&locks);
    let waiting: Vec<_> = (0..5).map(|_| tokio::spawn(acquiring(&locks))).collect();
    tokio::task::yield_now().await;
    holder.release().await.unwrap();
    let guard = got(&mut fetched);
    let report = locks.shutdown(Duration::from_secs(1)).await;
    assert_eq!(report.abandoned, 0);
    for waiter in waiting {
        assert!(matches!(waiter.await.unwrap(), Err(LockError::ShutDown)));
    }
    assert_eq!(guard.lost().await, LostCause::ShutDown);
    assert_eq!(store.population(), (0, 0));
    assert!(matches!(
        locks.lock("a").acquire().await,
        Err(LockError::ShutDown)
    ));
    drop(guard);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_with_the_lock_in_a_slot_leaves_nothing() {
    let store = MemoryBackend::new();
    let locks = memory(&store, 64, LEASE);
    let holder = acquiring(&locks).await.unwrap();
    let mut handed = queue(&locks);
    let behind = tokio::spawn(acquiring(&locks));
    tokio::task::yield_now().await;
    holder.release().await.unwrap();
    let report = locks.shutdown(Duration::from_secs(1)).await;
    assert_eq!(report.abandoned, 0);
    assert_eq!(store.population(), (0, 0));
    // It need not wait for the task ahead of it, which does not run.
    let behind = timeout(Duration::from_secs(1), behind).await.unwrap();
    assert!(matches!(behind.unwrap(), Err(LockError::ShutDown)));
    assert!(matches!(
        poll(&mut handed),
        Poll::Ready(Err(LockError::ShutDown))
    ));
}

#[tokio::test(start_paused = true)]
async fn those_who_poll_ask_by_themselves() {
    let (script, locks, guard) = held().await;
    let pause = Duration::from_millis(5);
    let poll = WaitStrategy::Poll {
        min: pause,
        max: pause,
    };
    let polling = tokio::spawn(locks.lock("a").strategy(poll).acquire());
    sleep(pause * 5).await;
    assert!(script.calls("attempt").len() > 2);
    guard.release().await.unwrap();
    polling.await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn waits_in_the_line_end_at_their_limit_and_on_cancellation() {
    let (script, locks, guard) = held().await;
    let limit = Duration::from_millis(300);
    let begun = Instant::now();
    let outcome = locks.lock("a").wait_at_most(limit).acquire().await;
    assert!(matches!(outcome, Err(LockError::WaitTimeout { waited, .. }) if waited >= limit));
    assert!(begun.elapsed() < limit * 2);
    let cancel = locktopus_core::CancellationToken::new();
    let waiting = tokio::spawn(locks.lock("a").cancel_on(cancel.clone()).acquire());
    sleep(limit).await;
    cancel.cancel();
    assert!(matches!(
        waiting.await.unwrap(),
        Err(LockError::Cancelled { .. })
    ));
    guard.release().await.unwrap();
    assert_eq!(script.calls("attempt").len(), 1);
}

#[tokio::test]
async fn impossible_settings_are_refused() {
    for turns in [0, 10_001] {
        let cohort = CohortSettings {
            turns,
            ..CohortSettings::default()
        };
        let built = Locktopus::builder(MemoryBackend::new())
            .cohort(cohort)
            .build();
        let message = built.unwrap_err().to_string();
        assert!(message.contains("cohort.turns"), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_threads_never_overlap_and_nothing_is_left() {
    let store = MemoryBackend::new();
    let inside = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let last = Arc::new(Mutex::new(None));
    let mut tasks = Vec::new();
    let processes: Vec<_> = (0..3)
        .map(|_| memory(&store, 8, Duration::from_millis(1)))
        .collect();
    for task in 0..24_u64 {
        let locks = processes[task as usize % 3].clone();
        let (inside, last) = (Arc::clone(&inside), Arc::clone(&last));
        tasks.push(tokio::spawn(async move {
            for round in 0..200 {
                // Some give up, at any moment.
                let limit = Duration::from_micros((task * 31 + round * 17) % 400);
                if round % 3 == 0 {
                    let _ = timeout(limit, locks.lock("a").acquire()).await;
                    continue;
                }
                let guard = locks.lock("a").acquire().await.unwrap();
                use std::sync::atomic::Ordering::SeqCst;
                assert_eq!(inside.fetch_add(1, SeqCst), 0, "two holders");
                let token = guard.token();
                let before = std::mem::replace(&mut *last.lock().unwrap(), token);
                assert!(before < token, "{before:?} then {token:?}");
                guard.ensure_valid().unwrap();
                assert_eq!(inside.fetch_sub(1, SeqCst), 1);
                if round % 2 == 0 {
                    guard.release().await.unwrap();
                }
            }
        }));
    }
    finish(tasks).await;
    until("nothing is left", || store.population() == (0, 0)).await;
    for locks in processes {
        until("nothing to do", || locks.background_tasks() == 0).await;
        assert_eq!(locks.held(), 0);
        assert_eq!(locks.shutdown(LEASE).await.abandoned, 0);
    }
    assert!(store.info().supports_queue);
}
