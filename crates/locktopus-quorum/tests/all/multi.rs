//! Several locks, all or nothing: order, waiting, loss, and cleanup. In this crate rather than in
//! the core, because a quorum keeps some of the locks.

use crate::quorum_common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use locktopus_contract::{
    AcquireAttempt, BackendError, BackendErrorKind, DynBackend, Executed, ExtendOutcome,
    ExtendRequest, GroupOutcome, Groups, LockBackend, LockTarget,
};
use locktopus_core::{CancellationToken, LockError, Locktopus, LostCause, MultiGuard, MultiLock};
use locktopus_memory::MemoryBackend;
use quorum_common::{Peer, cut, locks as quorum_locks, next, peer, peers, trusted, until};
use tokio::time::{Instant, sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_secs(10);

fn locks(backend: impl LockBackend) -> Locktopus {
    Locktopus::builder(backend).build().unwrap()
}

fn names(guard: &MultiGuard) -> Vec<String> {
    let members = guard.members();
    members.map(|(name, _)| name.name.to_string()).collect()
}

/// A backend that groups its locks in some way.
#[derive(Debug)]
struct Grouped {
    inner: MemoryBackend,
    group: fn(&str) -> Option<u32>,
}

#[async_trait]
impl locktopus_contract::Layer for Grouped {
    fn inner(&self) -> &dyn LockBackend {
        &self.inner
    }

    fn groups(&self) -> Option<&dyn Groups> {
        Some(self)
    }
}

#[async_trait]
impl Groups for Grouped {
    fn group(&self, target: &LockTarget) -> Option<u32> {
        (self.group)(target.name().as_str())
    }

    async fn attempt_all(&self, attempts: &[AcquireAttempt]) -> Result<GroupOutcome, BackendError> {
        self.inner.attempt_all(attempts).await
    }
}

#[tokio::test(start_paused = true)]
async fn all_are_held_and_all_are_given_back() {
    let store = MemoryBackend::new();
    let locks = locks(store.clone());
    let other = quorum_locks_of(&store);
    let guard = locks.multi(["b", "a", "b"]).acquire().await.unwrap();
    assert_eq!(names(&guard), ["a", "b"]);
    assert_eq!(store.population().0, 2);
    assert!(other.lock("a").try_acquire().await.unwrap().is_none());
    assert!(guard.tokens().values().all(Option::is_some));
    let ends: Vec<_> = guard
        .members()
        .map(|(_, lease)| lease.valid_until())
        .collect();
    assert_eq!(Some(guard.valid_until()), ends.into_iter().min());
    guard.release().await.unwrap();
    assert_eq!(store.population(), (0, 0));
    drop(locks.multi(["a", "b"]).acquire().await.unwrap());
    until("given back", || store.population() == (0, 0)).await;
}

fn quorum_locks_of(store: &MemoryBackend) -> Locktopus {
    locks(store.another_client())
}

#[tokio::test(start_paused = true)]
async fn trying_never_waits_and_takes_nothing_if_one_is_held() {
    let store = MemoryBackend::new();
    let (locks, other) = (locks(store.clone()), quorum_locks_of(&store));
    let blocker = other.lock("c").acquire().await.unwrap();
    let begun = Instant::now();
    assert!(
        locks
            .multi(["a", "b", "c"])
            .try_acquire()
            .await
            .unwrap()
            .is_none()
    );
    assert_eq!(begun.elapsed(), Duration::ZERO);
    until("nothing of it is left", || store.population() == (1, 0)).await;
    blocker.release().await.unwrap();
    let guard = locks.multi(["a", "b", "c"]).try_acquire().await.unwrap();
    assert_eq!(names(&guard.unwrap()), ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn while_one_of_a_group_is_waited_for_the_others_are_free() {
    let store = MemoryBackend::new();
    let (locks, other) = (locks(store.clone()), quorum_locks_of(&store));
    let blocker = other.lock("b").acquire().await.unwrap();
    let waiting = tokio::spawn(locks.multi(["a", "b", "c"]).acquire());
    sleep(SECOND).await;
    for free in ["a", "c"] {
        let guard = other.lock(free).try_acquire().await.unwrap();
        guard.unwrap().release().await.unwrap();
    }
    blocker.release().await.unwrap();
    let begun = Instant::now();
    let guard = waiting.await.unwrap().unwrap();
    assert_eq!(
        begun.elapsed(),
        Duration::ZERO,
        "handed over, not polled for"
    );
    assert_eq!(names(&guard).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_wait_limit_is_for_all_of_them_together() {
    let (a, b) = (MemoryBackend::new(), MemoryBackend::new());
    let blockers = [quorum_locks_of(&a), quorum_locks_of(&b)];
    let first = blockers[0].lock("x").acquire().await.unwrap();
    let _second = blockers[1].lock("x").acquire().await.unwrap();
    let release = tokio::spawn(async move {
        sleep(SECOND).await;
        first.release().await.unwrap();
    });
    let both = MultiLock::new()
        .add_on("a", locks(a.clone()).lock("x"))
        .add_on("b", locks(b.clone()).lock("x"))
        .wait_at_most(2 * SECOND);
    let begun = Instant::now();
    match both.acquire().await.unwrap_err() {
        LockError::WaitTimeout { waited, .. } => assert_eq!(waited, 2 * SECOND),
        other => panic!("{other:?}"),
    }
    assert_eq!(begun.elapsed(), 2 * SECOND);
    release.await.unwrap();
    until("given back", || {
        a.population() == (0, 0) && b.population() == (1, 0)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_member_that_errors_leaves_nothing_anywhere() {
    for lost in [false, true] {
        let (good, bad) = (peer(1), peer(2));
        let (locks_good, locks_bad) = (locks(good.clone()), locks(bad.clone()));
        let both = || {
            MultiLock::new()
                .add_on("1-good", locks_good.lock("x"))
                .add_on("2-bad", locks_bad.lock("x"))
                .add_on("2-bad", locks_bad.lock("y"))
        };
        if lost {
            bad.lose(1000);
        } else {
            bad.kill();
        }
        let error = both().try_acquire().await.unwrap_err();
        assert!(matches!(error, LockError::Backend { .. }), "{error:?}");
        bad.lose(0);
        bad.revive();
        let begun = Instant::now();
        until("given back", || {
            good.store.population() == (0, 0) && bad.store.population() == (0, 0)
        })
        .await;
        assert!(begun.elapsed() < LEASE, "lapsed instead");
        // A waiting acquisition continues when the backend is back.
        bad.kill();
        let healed = bad.clone();
        let heal = tokio::spawn(async move {
            sleep(SECOND).await;
            healed.revive();
        });
        both().acquire().await.unwrap().release().await.unwrap();
        heal.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn when_one_is_lost_all_are_lost_and_given_back() {
    let (a, b) = (MemoryBackend::new(), MemoryBackend::new());
    let (locks_a, locks_b) = (locks(a.clone()), locks(b.clone()));
    let guard = MultiLock::new()
        .add_on("a", locks_a.lock("x"))
        .add_on("a", locks_a.lock("y"))
        .add_on("b", locks_b.lock("z"))
        .renewed_lease(LEASE)
        .acquire()
        .await
        .unwrap();
    let leases: Vec<_> = guard.members().map(|(_, lease)| lease.clone()).collect();
    let told = guard.lost_token();
    b.clear();
    // No task uses the guard.
    told.cancelled().await;
    let begun = Instant::now();
    until("the others are given back", || a.population() == (0, 0)).await;
    assert!(begun.elapsed() < LEASE / 2, "lapsed instead");
    let (name, cause) = guard.lost().await;
    assert_eq!((&*name.backend, name.name.as_str()), ("b", "z"));
    assert_eq!(cause, LostCause::Missing);
    for other in &leases[..2] {
        let cause = other.lost().await;
        assert!(
            matches!(&cause, LostCause::MemberLost { lock } if lock.contains("\"z\"")),
            "{cause:?}"
        );
    }
    assert!(matches!(
        guard.ensure_valid().unwrap_err(),
        LockError::Lost { cause: LostCause::Missing, target } if target.name().as_str() == "z"
    ));
    assert_eq!(guard.remaining(), Duration::ZERO);
    let error = guard.release().await.unwrap_err();
    assert_eq!(error.errors().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn every_error_of_a_release_is_reported() {
    let (a, b) = (peer(1), peer(2));
    let guard = MultiLock::new()
        .add_on("a", locks(a.clone()).lock("x"))
        .add_on("b", locks(b.clone()).lock("y"))
        .acquire()
        .await
        .unwrap();
    a.kill();
    b.kill();
    let error = guard.release().await.unwrap_err();
    assert_eq!(error.errors().len(), 2, "{error}");
    a.revive();
    b.revive();
    until("released in the background", || {
        a.store.population().0 + b.store.population().0 == 0
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_fixed_lease_is_kept_while_waiting_and_begins_when_all_are_taken() {
    let (a, b) = (MemoryBackend::new(), MemoryBackend::new());
    let blocker = quorum_locks_of(&b).lock("y").acquire().await.unwrap();
    let (first, second) = (locks(a.clone()), locks(b.clone()));
    let both = MultiLock::new()
        .add_on("a", first.lock("x"))
        .add_on("b", second.lock("y"))
        .fixed_lease(SECOND);
    let waiting = tokio::spawn(both.acquire());
    // Many times the lease.
    for _ in 0..100 {
        sleep(SECOND / 4).await;
        assert_eq!(a.population().0, 1);
    }
    blocker.release().await.unwrap();
    let guard = waiting.await.unwrap().unwrap();
    assert!(
        guard.remaining() > SECOND * 8 / 10,
        "{:?}",
        guard.remaining()
    );
    let (_, cause) = guard.lost().await;
    assert_eq!(cause, LostCause::Expired);
    until("all are over", || a.population().0 + b.population().0 == 0).await;
}

/// A backend whose next extensions fail as unreachable.
#[derive(Debug)]
struct Unextended {
    inner: MemoryBackend,
    failures: AtomicUsize,
}

#[async_trait]
impl locktopus_contract::Layer for Unextended {
    fn inner(&self) -> &dyn LockBackend {
        &self.inner
    }

    async fn extend(
        &self,
        batch: &[ExtendRequest],
        deadline: Instant,
    ) -> Vec<Result<ExtendOutcome, BackendError>> {
        let fewer = |left: usize| left.checked_sub(1);
        let (set, get) = (Ordering::SeqCst, Ordering::SeqCst);
        if self.failures.fetch_update(set, get, fewer).is_err() {
            return self.inner.extend(batch, deadline).await;
        }
        let (kind, executed) = (BackendErrorKind::Timeout, Executed::Maybe);
        let error = || BackendError::new("unextended", kind, executed, "no answer");
        batch.iter().map(|_| Err(error())).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_extended_when_all_are_taken_is_taken_again() {
    let (a, b) = (MemoryBackend::new(), MemoryBackend::new());
    let blocker = quorum_locks_of(&b).lock("y").acquire().await.unwrap();
    let first = locks(Unextended {
        inner: a.clone(),
        failures: AtomicUsize::new(1),
    });
    let second = locks(b.clone());
    let both = MultiLock::new()
        .add_on("a", first.lock("x"))
        .add_on("b", second.lock("y"))
        .fixed_lease(LEASE);
    let waiting = tokio::spawn(both.acquire());
    // Too long for a lease that begins when all locks are taken, and short enough that it is not
    // extended earlier.
    sleep(LEASE / 4).await;
    blocker.release().await.unwrap();
    let freed = Instant::now();
    let guard = waiting.await.unwrap().unwrap();
    assert!(freed.elapsed() < SECOND, "{:?}", freed.elapsed());
    assert!(
        guard.remaining() > LEASE * 8 / 10,
        "{:?}",
        guard.remaining()
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_lost_while_waiting_is_taken_again() {
    let (a, b) = (MemoryBackend::new(), MemoryBackend::new());
    let blocker = quorum_locks_of(&b).lock("y").acquire().await.unwrap();
    let (first, second) = (locks(a.clone()), locks(b.clone()));
    let both = MultiLock::new()
        .add_on("a", first.lock("x"))
        .add_on("b", second.lock("y"))
        .renewed_lease(LEASE);
    let waiting = tokio::spawn(both.acquire());
    until("the first is held", || a.population().0 == 1).await;
    a.clear();
    sleep(LEASE).await;
    assert_eq!(a.population().0, 1, "taken again");
    blocker.release().await.unwrap();
    waiting.await.unwrap().unwrap().ensure_valid().unwrap();
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_the_wait_and_gives_everything_back() {
    let (a, b) = (MemoryBackend::new(), MemoryBackend::new());
    let _blocker = quorum_locks_of(&b).lock("y").acquire().await.unwrap();
    let (first, second) = (locks(a.clone()), locks(b.clone()));
    let token = CancellationToken::new();
    for of_a_member in [false, true] {
        let token = token.child_token();
        let mut member = first.lock("x");
        if of_a_member {
            member = member.cancel_on(token.clone());
        }
        let mut both = MultiLock::new()
            .add_on("a", member)
            .add_on("b", second.lock("y"));
        if !of_a_member {
            both = both.cancel_on(token.clone());
        }
        let waiting = tokio::spawn(both.acquire());
        until("the first is held", || a.population().0 == 1).await;
        token.cancel();
        let error = waiting.await.unwrap().unwrap_err();
        assert!(matches!(error, LockError::Cancelled { .. }));
        until("given back", || a.population() == (0, 0)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn members_may_be_of_any_kind_and_on_a_quorum() {
    let store = MemoryBackend::new();
    let (locks, nodes) = (locks(store.clone()), peers(3, 1));
    let quorum = quorum_locks(trusted(&nodes).build().unwrap());
    let rw = locks.rw_lock("table");
    let all = || {
        MultiLock::new()
            .add_on("memory", rw.read())
            .add_on("memory", locks.fair_lock("fair"))
            .add_on("quorum", quorum.mutex("m1"))
            .add_on("quorum", quorum.mutex("m2"))
    };
    let guard = all().acquire().await.unwrap();
    let tokens: Vec<_> = guard.tokens().into_values().map(|t| t.is_some()).collect();
    assert_eq!(tokens, [true, false, true, true], "readers have none");
    assert!(rw.read().try_acquire().await.unwrap().is_some());
    assert!(
        all()
            .add_on("memory", rw.write())
            .try_acquire()
            .await
            .unwrap()
            .is_none()
    );
    guard.release().await.unwrap();
    until("nothing is left", || store.population() == (0, 0)).await;
    // The stronger mode wins.
    let guard = all().add_on("memory", rw.write()).acquire().await.unwrap();
    assert!(rw.read().try_acquire().await.unwrap().is_none());
    guard.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn owners_are_refused() {
    let locks = locks(MemoryBackend::new());
    let owner = locktopus_core::Owner::new();
    let request = locks.multi(["a"]).add(locks.lock("b").owner(&owner));
    let error = request.acquire().await;
    assert!(matches!(error.unwrap_err(), LockError::Option(error) if error.option == "owner"));
}

/// The backends of the locks in the competition below.
type Places = Vec<(String, DynBackend, MemoryBackend)>;

fn places(group: fn(&str) -> Option<u32>, stores: &[MemoryBackend]) -> Places {
    let place = |(at, store): (usize, &MemoryBackend)| {
        let inner = store.another_client();
        let backend: DynBackend = Arc::new(Grouped { inner, group });
        (format!("store-{at}"), backend, store.clone())
    };
    stores.iter().enumerate().map(place).collect()
}

/// Clients compete for random subsets of three locks, spread over the stores.
async fn compete(rounds: usize, stores: usize, group: fn(&str) -> Option<u32>) {
    let stores: Vec<_> = (0..stores).map(|_| MemoryBackend::new()).collect();
    let busy: Arc<[AtomicBool; 3]> = Arc::default();
    let longest = Arc::new(AtomicUsize::new(0));
    let mut clients = Vec::new();
    for client in 0..3_u64 {
        let own: Vec<_> = places(group, &stores)
            .into_iter()
            .map(|(label, backend, _)| (label, Locktopus::builder_dyn(backend).build().unwrap()))
            .collect();
        let (busy, longest) = (Arc::clone(&busy), Arc::clone(&longest));
        clients.push(tokio::spawn(async move {
            let mut dice = client + 1;
            for _ in 0..rounds / 3 {
                let subset = 1 + next(&mut dice) % 7;
                let mut wanted: Vec<usize> = (0..3).filter(|n| subset >> n & 1 == 1).collect();
                if next(&mut dice).is_multiple_of(2) {
                    wanted.reverse();
                }
                let mut multi = MultiLock::new();
                for n in &wanted {
                    let (label, locks) = &own[n % own.len()];
                    multi = multi.add_on(label, locks.lock(format!("lock-{n}")));
                }
                let begun = Instant::now();
                let guard = multi.acquire().await.unwrap();
                let waited = usize::try_from(begun.elapsed().as_millis()).unwrap();
                longest.fetch_max(waited, Ordering::Relaxed);
                for n in &wanted {
                    assert!(
                        !busy[*n].swap(true, Ordering::SeqCst),
                        "lock {n} is held twice"
                    );
                }
                match next(&mut dice) % 4 {
                    0 => sleep(Duration::from_millis(next(&mut dice) % 5)).await,
                    _ => tokio::task::yield_now().await,
                }
                guard.ensure_valid().unwrap();
                for n in &wanted {
                    busy[*n].store(false, Ordering::SeqCst);
                }
                if next(&mut dice).is_multiple_of(8) {
                    drop(guard);
                } else {
                    guard.release().await.unwrap();
                }
            }
        }));
    }
    for client in clients {
        // Watchdogs would keep a deadlock alive for ever.
        let done = timeout(Duration::from_secs(24 * 60 * 60), client).await;
        done.expect("no deadlock").unwrap();
    }
    until("nothing is left", || {
        stores.iter().all(|store| store.population() == (0, 0))
    })
    .await;
    // Two competitors that hold for at most 5 ms at a time cannot account for a second.
    let longest = longest.load(Ordering::Relaxed);
    println!(
        "{rounds} rounds over {} stores, longest wait {longest} ms",
        stores.len()
    );
    assert!(longest < 1000, "waited {longest} ms");
}

fn rounds() -> usize {
    let usual = if cfg!(debug_assertions) {
        3_000
    } else {
        100_000
    };
    let wanted = std::env::var("LOCKTOPUS_ROUNDS").ok();
    wanted.map_or(usual, |n| n.parse().unwrap())
}

#[tokio::test(start_paused = true)]
async fn random_subsets_of_one_group() {
    compete(rounds(), 1, |_| Some(0)).await;
}

#[tokio::test(start_paused = true)]
async fn random_subsets_of_two_groups() {
    compete(rounds(), 1, |name| Some(u32::from(name.ends_with('1')))).await;
}

#[tokio::test(start_paused = true)]
async fn random_subsets_one_by_one() {
    compete(rounds(), 1, |_| None).await;
}

#[tokio::test(start_paused = true)]
async fn random_subsets_over_three_backends() {
    compete(rounds(), 3, |_| Some(0)).await;
}

#[tokio::test(start_paused = true)]
async fn random_subsets_over_two_backends_in_groups() {
    compete(rounds(), 2, |_| Some(7)).await;
}

#[tokio::test(start_paused = true)]
async fn dropped_at_any_point_it_leaves_nothing() {
    let mut cuts = 0;
    for trouble in 0..4 {
        for polls in 0..300 {
            let (a, b) = (peer(10 + trouble), peer(20 + trouble));
            let (locks_a, locks_b) = (locks(a.clone()), locks(b.clone()));
            let blocker = quorum_locks_of(&a.store).lock("y").acquire().await.unwrap();
            let other = quorum_locks_of(&b.store).lock("z").acquire().await.unwrap();
            for peer in [&a, &b] {
                peer.delay(Duration::from_millis(3));
                peer.lose(if trouble == 1 { 300 } else { 0 });
            }
            let free = tokio::spawn(async move {
                sleep(Duration::from_millis(20)).await;
                blocker.release().await.unwrap();
                sleep(Duration::from_millis(20)).await;
                other.release().await.unwrap();
            });
            let mut multi = MultiLock::new()
                .add_on("a", locks_a.lock("x"))
                .add_on("a", locks_a.lock("y"))
                .add_on("b", locks_b.lock("z"));
            multi = match trouble {
                2 => multi.wait_at_most(Duration::from_millis(30)),
                3 => multi.fixed_lease(LEASE),
                _ => multi.renewed_lease(LEASE),
            };
            let work = async { multi.acquire().await.ok()?.release().await.ok() };
            let completed = cut(polls, work).await.is_some();
            free.await.unwrap();
            let begun = Instant::now();
            settled(&[&a, &b], &[&locks_a, &locks_b]).await;
            assert!(
                begun.elapsed() < LEASE / 2,
                "lapsed: trouble {trouble}, {polls} polls"
            );
            cuts += 1;
            if completed {
                break;
            }
        }
    }
    assert!(cuts > 40, "{cuts}");
}

async fn settled(peers: &[&Peer], locks: &[&Locktopus]) {
    for peer in peers {
        peer.lose(0);
    }
    until("nothing is left", || {
        peers.iter().all(|peer| peer.store.population() == (0, 0))
            && locks.iter().all(|l| l.held() + l.background_tasks() == 0)
    })
    .await;
}
