//! RedLock: what a majority grants and refuses, and what is left on each node.

use crate::quorum_common;

use std::sync::Arc;
use std::time::Duration;

use locktopus_contract::{
    AcquireAttempt, AttemptOutcome, BackendErrorKind, Diagnostics, Directory, DynBackend, Executed,
    ExtendOutcome, ExtendRequest, LockBackend, LockKind, LockName, LockTarget, MutexProfile,
    NameError, OwnerId, ReleaseOutcome, ReleaseRequest, Severity, ValueEncoding,
};
use locktopus_core::{LockError, LockGuard, Locktopus, LostCause};
use locktopus_memory::MemoryBackend;
use locktopus_quorum::QuorumBackend;
use quorum_common::{
    Peer, cut, holders, locks, mutex, peers, probed, probing, trusted, trusting, until,
};
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_secs(10);

fn soon() -> Instant {
    Instant::now() + SECOND
}

fn attempt(target: &LockTarget, owner: &OwnerId) -> AcquireAttempt {
    AcquireAttempt::new(target.clone(), owner.clone(), LEASE, soon())
}

fn release(target: &LockTarget, owner: &OwnerId) -> ReleaseRequest {
    ReleaseRequest::new(target.clone(), owner.clone(), soon())
}

fn backend_error(error: &LockError) -> (BackendErrorKind, String) {
    match error {
        LockError::Backend { source, .. } => (source.kind(), source.message().to_owned()),
        other => panic!("{other:?}"),
    }
}

async fn settled(peers: &[Peer], quorum: &QuorumBackend) {
    until("nothing is left", || {
        holders(peers) + quorum.background_tasks() == 0
    })
    .await;
}

/// No request is under way any more.
async fn all_answered(peers: &[Peer], quorum: &QuorumBackend, expected: usize) {
    until("stragglers", || quorum.background_tasks() == 0).await;
    assert_eq!(holders(peers), expected);
}

#[tokio::test(start_paused = true)]
async fn two_of_five_nodes_may_be_down_and_three_may_not() {
    let (peers, quorum) = probing(5, 1);
    let locks = locks(quorum.clone());
    peers[0].kill();
    peers[3].kill();
    let guard = locks.mutex("job").acquire().await.unwrap();
    assert!(guard.token().is_some());
    assert!(locks.mutex("job").try_acquire().await.unwrap().is_none());
    // A holder keeps its lock with the remaining nodes.
    sleep(LEASE * 6).await;
    guard.ensure_valid().unwrap();
    guard.release().await.unwrap();

    peers[4].kill();
    let error = locks.mutex("job").try_acquire().await.unwrap_err();
    assert!(error.is_no_quorum());
    let (_, message) = backend_error(&error);
    assert!(message.contains("needs 3 of 5 nodes"), "{message}");
    for part in [
        "a, d, e: it did not say who it is: peer: it is down",
        "b, c: granted",
    ] {
        assert!(message.contains(part), "{part:?} in {message:?}");
    }
    peers.iter().for_each(|peer| peer.revive());
    settled(&peers, &quorum).await;
}

#[tokio::test(start_paused = true)]
async fn waiting_outlasts_a_missing_quorum() {
    let peers = peers(3, 2);
    let locks = locks(probed(&peers).build().unwrap());
    peers[0].kill();
    peers[1].kill();
    let healed = peers.clone();
    let heal = tokio::spawn(async move {
        sleep(SECOND).await;
        healed[0].revive();
    });
    let begun = Instant::now();
    let guard = locks.mutex("job").acquire().await.unwrap();
    assert!(begun.elapsed() >= SECOND && begun.elapsed() < 2 * SECOND);
    heal.await.unwrap();
    guard.release().await.unwrap();
    let never = locks.mutex("job").wait_at_most(SECOND);
    peers[2].kill();
    peers[0].kill();
    let error = never.acquire().await.unwrap_err();
    assert!(matches!(error, LockError::WaitTimeout { .. }));
    assert!(error.is_no_quorum());
}

#[tokio::test(start_paused = true)]
async fn a_restarted_node_does_not_vote_until_the_longest_lease_has_passed() {
    let peers = peers(3, 3);
    let max_lease = 30 * SECOND;
    let quorum = probed(&peers).max_lease(max_lease).build().unwrap();
    let locks = locks(quorum.clone());
    let request = locks.mutex("job").fixed_lease(max_lease);
    let first = request.acquire().await.unwrap();
    // Two nodes of three lost its data, so any client could take it now.
    peers[0].restart_empty();
    peers[1].restart_empty();
    let other = quorum_common::locks(probed(&peers).max_lease(max_lease).build().unwrap());
    // One `Locktopus` would send nothing while one of its tasks holds the lock.
    let again = quorum_common::locks(quorum.clone());
    for asked in [&again, &other] {
        let error = asked.mutex("job").try_acquire().await.unwrap_err();
        let (kind, message) = backend_error(&error);
        assert_eq!(kind, BackendErrorKind::NoQuorum);
        let why = "has not been up for long enough";
        assert!(message.contains(why), "{message}");
    }
    assert_eq!(holders(&peers[..2]), 0, "they were not even asked");
    sleep(max_lease - SECOND).await;
    let too_soon = other.mutex("job").try_acquire().await;
    assert!(too_soon.is_err(), "a second too soon");
    first.ensure_valid().unwrap();
    sleep(SECOND).await;
    assert!(first.ensure_valid().is_err());
    let second = other.mutex("job").try_acquire().await.unwrap().unwrap();
    assert!(second.token() > first.token());
}

/// The restart happens during the attempt, so the identity was read before it.
#[tokio::test(start_paused = true)]
async fn an_answer_across_a_restart_does_not_count() {
    let (peers, quorum) = probing(3, 4);
    let (target, owner) = (mutex("job"), OwnerId::generate());
    assert!(matches!(
        quorum.attempt(&attempt(&target, &owner)).await.unwrap(),
        AttemptOutcome::Granted { .. }
    ));
    peers[2].kill();
    let _ = quorum.release(&release(&target, &owner)).await.unwrap();
    // A client that hides its reconnection: the call succeeds, but on a new connection.
    let hidden = peers[1].clone();
    let (a, b) = (Arc::new(peers[0].clone()), Arc::new(peers[2].clone()));
    let sly: DynBackend = Arc::new(Reconnecting {
        peer: hidden.clone(),
    });
    let quorum = QuorumBackend::builder()
        .probed_node("a", a.clone(), a)
        .probed_node("sly", sly, Arc::new(hidden))
        .probed_node("c", b.clone(), b)
        .build()
        .unwrap();
    let error = quorum
        .attempt(&attempt(&target, &OwnerId::generate()))
        .await
        .unwrap_err();
    assert!(error.message().contains("sly: it reconnected"), "{error}");
    peers[2].revive();
    settled(&peers, &quorum).await;
}

/// Reconnects silently before every attempt.
#[derive(Debug)]
struct Reconnecting {
    peer: Peer,
}

#[async_trait::async_trait]
impl locktopus_contract::Layer for Reconnecting {
    fn inner(&self) -> &dyn LockBackend {
        &self.peer
    }

    async fn attempt(
        &self,
        attempt: &AcquireAttempt,
    ) -> Result<AttemptOutcome, locktopus_contract::BackendError> {
        self.peer.revive();
        self.inner().attempt(attempt).await
    }
}

#[tokio::test(start_paused = true)]
async fn slow_nodes_are_not_waited_for_and_are_released_all_the_same() {
    let peers = peers(5, 5);
    let quorum = probed(&peers)
        .node_timeout(50 * SECOND / 1000)
        .build()
        .unwrap();
    let locks = locks(quorum.clone());
    locks
        .mutex("warm-up")
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    settled(&peers, &quorum).await;
    peers[0].freeze(true);
    peers[1].freeze(true);
    let begun = Instant::now();
    let guard = locks.mutex("job").acquire().await.unwrap();
    assert_eq!(begun.elapsed(), Duration::ZERO, "three answered at once");
    guard.release().await.unwrap();
    assert_eq!(holders(&peers[2..]), 0);
    // Requests to the frozen nodes arrive now, and must not leave a hold.
    peers[0].freeze(false);
    peers[1].freeze(false);
    let begun = Instant::now();
    settled(&peers, &quorum).await;
    assert!(begun.elapsed() < LEASE / 2, "released, not lapsed");
}

#[tokio::test(start_paused = true)]
async fn a_failed_round_leaves_nothing_on_any_node() {
    let (peers, quorum) = trusting(5, 6);
    let (target, owner) = (mutex("job"), OwnerId::generate());
    let other = OwnerId::generate();
    for peer in &peers[..3] {
        let _ = peer.store.attempt(&attempt(&target, &other)).await.unwrap();
    }
    let held = quorum.attempt(&attempt(&target, &owner)).await.unwrap();
    assert!(matches!(held, AttemptOutcome::Busy { remaining: Some(left) } if left <= LEASE));
    assert_eq!(holders(&peers), 3, "those of the other one");
    // The same owner may try again, and its own remains do not block it.
    for peer in &peers[..3] {
        let _ = peer.store.release(&release(&target, &other)).await.unwrap();
    }
    let granted = quorum.attempt(&attempt(&target, &owner)).await.unwrap();
    assert!(matches!(granted, AttemptOutcome::Granted { .. }));
}

/// A dropped round does not take the lock. What it took is given back before the lease is over.
#[tokio::test(start_paused = true)]
async fn a_round_that_is_dropped_gives_back_what_it_takes() {
    let (peers, quorum) = trusting(3, 12);
    peers
        .iter()
        .for_each(|peer| peer.far(Duration::from_millis(20)));
    let (target, owner) = (mutex("job"), OwnerId::generate());
    let begun = Instant::now();
    let attempt = attempt(&target, &owner);
    assert!(cut(1, quorum.attempt(&attempt)).await.is_none());
    until("it arrives", || holders(&peers) == 3).await;
    settled(&peers, &quorum).await;
    assert!(begun.elapsed() < SECOND, "{:?}", begun.elapsed());
}

/// A release without an answer may still arrive. If the same owner tried there again, it would
/// silently lose a vote.
#[tokio::test(start_paused = true)]
async fn an_owner_never_counts_on_a_node_that_may_still_release_it() {
    let (peers, quorum) = trusting(3, 7);
    let (target, owner) = (mutex("job"), OwnerId::generate());
    peers[1].kill();
    peers[2].kill();
    peers[0].lose(1000);
    assert!(quorum.attempt(&attempt(&target, &owner)).await.is_err());
    until("a release got no answer", || peers[0].calls("release") > 0).await;
    peers[0].lose(0);
    settled(&peers, &quorum).await;
    peers[1].revive();
    let error = quorum.attempt(&attempt(&target, &owner)).await.unwrap_err();
    assert!(error.message().contains("not surely given back"), "{error}");
    let fresh = OwnerId::generate();
    let granted = quorum.attempt(&attempt(&target, &fresh)).await.unwrap();
    assert!(matches!(granted, AttemptOutcome::Granted { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_grant_whose_validity_is_spent_is_never_returned() {
    // The nodes answer in time, but only 12.8 ms of a lease of 20 ms may be trusted.
    let (lease, valid) = (Duration::from_millis(20), Duration::from_micros(12_800));
    let (mut granted, mut spent) = (0, 0);
    let (peers, quorum) = trusting(3, 99);
    peers
        .iter()
        .for_each(|peer| peer.delay(Duration::from_millis(8)));
    for round in 0..300 {
        let (target, owner) = (mutex(&format!("job-{round}")), OwnerId::generate());
        let attempt = AcquireAttempt {
            lease,
            ..attempt(&target, &owner)
        };
        let sent = Instant::now();
        match quorum.attempt(&attempt).await {
            Ok(AttemptOutcome::Granted { .. }) => {
                assert!(sent.elapsed() < valid, "{:?}", sent.elapsed());
                granted += 1;
            }
            Err(error) if error.kind() == BackendErrorKind::Timeout => spent += 1,
            _ => {}
        }
    }
    assert!(granted > 0 && spent > 0, "{granted} {spent}");
    settled(&peers, &quorum).await;
}

/// A request whose deadline is over fails without asking any node, and says so.
#[tokio::test(start_paused = true)]
async fn what_comes_too_late_is_not_begun() {
    let (peers, quorum) = trusting(3, 9);
    let (target, owner) = (mutex("job"), OwnerId::generate());
    let granted = quorum.attempt(&attempt(&target, &owner)).await.unwrap();
    all_answered(&peers, &quorum, 3).await;
    let late = Instant::now();
    let mut errors = Vec::new();
    let attempt = AcquireAttempt {
        deadline: late,
        ..attempt(&target, &OwnerId::generate())
    };
    errors.push(quorum.attempt(&attempt).await.unwrap_err());
    let release_late = ReleaseRequest::new(target.clone(), owner.clone(), late);
    errors.push(quorum.release(&release_late).await.unwrap_err());
    let extension = ExtendRequest::new(target.clone(), owner.clone(), LEASE * 2);
    let extended = quorum.extend(&[extension], late).await;
    errors.extend(extended.into_iter().map(Result::unwrap_err));
    errors.push(quorum.evict(&target, late).await.unwrap_err());
    errors.push(quorum.inspect(&target, late).await.unwrap_err());
    assert_eq!(errors.len(), 5);
    for error in errors {
        assert_eq!(error.kind(), BackendErrorKind::Timeout, "{error}");
        assert_eq!(error.executed(), Executed::No, "{error}");
    }
    for call in ["release", "extend", "evict", "inspect"] {
        assert_eq!(peers.iter().map(|peer| peer.calls(call)).sum::<usize>(), 0);
    }
    // It is still held, and can be released.
    let again = quorum.attempt(&self::attempt(&target, &owner)).await;
    assert_eq!(again.unwrap(), granted);
    let released = quorum.release(&release(&target, &owner)).await.unwrap();
    assert_eq!(released, ReleaseOutcome::Released);
    settled(&peers, &quorum).await;
}

#[tokio::test(start_paused = true)]
async fn a_repetition_is_granted_the_same_token() {
    let (peers, quorum) = trusting(3, 8);
    for round in 0..50 {
        let (target, owner) = (mutex(&format!("job-{round}")), OwnerId::generate());
        peers
            .iter()
            .for_each(|peer| peer.delay(Duration::from_millis(round)));
        let first = quorum.attempt(&attempt(&target, &owner)).await.unwrap();
        let again = quorum.attempt(&attempt(&target, &owner)).await.unwrap();
        assert_eq!(first, again);
        for expected in [ReleaseOutcome::Released, ReleaseOutcome::NotHeld] {
            let outcome = quorum.release(&release(&target, &owner)).await.unwrap();
            assert_eq!(outcome, expected);
        }
    }
}

/// The counter of one node is far ahead, and the next majority excludes it.
#[tokio::test(start_paused = true)]
async fn tokens_grow_over_different_majorities() {
    let (peers, quorum) = trusting(3, 9);
    let target = mutex("job");
    let mut last = None;
    for round in 0..12 {
        let down = &peers[round % 3];
        // Another client drives up the counter of one node.
        for _ in 0..20 {
            let (peer, owner) = (&peers[(round + 1) % 3], OwnerId::generate());
            let _ = peer.store.attempt(&attempt(&target, &owner)).await.unwrap();
            let _ = peer.store.release(&release(&target, &owner)).await.unwrap();
        }
        down.kill();
        let owner = OwnerId::generate();
        let outcome = quorum.attempt(&attempt(&target, &owner)).await.unwrap();
        let AttemptOutcome::Granted { token } = outcome else {
            panic!("{outcome:?}");
        };
        assert!(token > last, "round {round}: {token:?} after {last:?}");
        last = token;
        let _ = quorum.release(&release(&target, &owner)).await.unwrap();
        down.revive();
        settled(&peers, &quorum).await;
    }
}

#[tokio::test(start_paused = true)]
async fn single_key_mutexes_have_no_token_and_their_values_on_every_node() {
    let (peers, quorum) = probing(3, 10);
    let locks = locks(quorum.clone());
    let profile = MutexProfile::single_key().value(ValueEncoding::Base64);
    let request = locks.mutex_as("job", profile.clone());
    let guard = request.acquire().await.unwrap();
    assert_eq!(guard.token(), None);
    assert_eq!(guard.owner_id().expose().len(), 24);
    let name = LockName::new("job").unwrap();
    let target = LockTarget::new(name, LockKind::Mutex(Arc::new(profile)));
    all_answered(&peers, &quorum, 3).await;
    for peer in &peers {
        let state = peer.store.inspect(&target, soon()).await.unwrap();
        assert_eq!(&state.holder().unwrap().owner, guard.owner_id());
    }
}

/// Three nodes, and a mutex that all of them know.
async fn held_by_three(seed: u64) -> (Vec<Peer>, QuorumBackend, Locktopus, LockGuard) {
    let (peers, quorum) = trusting(3, seed);
    let locks = locks(quorum.clone());
    let request = locks.mutex("job").renewed_lease(LEASE);
    let guard = request.acquire().await.unwrap();
    all_answered(&peers, &quorum, 3).await;
    (peers, quorum, locks, guard)
}

#[tokio::test(start_paused = true)]
async fn a_node_that_lost_the_key_is_given_it_back_by_the_renewal() {
    let (peers, quorum, _locks, guard) = held_by_three(11).await;
    assert!(peers[0].store.forget(&mutex("job")));
    peers[1].kill();
    sleep(LEASE / 2).await;
    assert_eq!(holders(&peers[..1]), 1, "put back");
    guard.ensure_valid().unwrap();
    let state = peers[0].store.inspect(&mutex("job"), soon()).await.unwrap();
    assert!(state.last_token >= guard.token());
    guard.release().await.unwrap();
    peers[1].revive();
    settled(&peers, &quorum).await;
}

/// Two of three answer at once and decide. The third, which forgot, still counts.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_always_the_last_to_answer_is_given_the_key_back_too() {
    let (peers, quorum, _locks, guard) = held_by_three(19).await;
    peers[2].delay(Duration::from_millis(20));
    assert!(peers[2].store.forget(&mutex("job")));
    until("put back", || holders(&peers[2..]) == 1).await;
    guard.ensure_valid().unwrap();
    let state = peers[2].store.inspect(&mutex("job"), soon()).await.unwrap();
    assert_eq!(&state.holder().unwrap().owner, guard.owner_id());
    assert!(state.last_token >= guard.token());
    guard.release().await.unwrap();
    settled(&peers, &quorum).await;
}

/// A hold restored late must not outlive a release that came in between.
#[tokio::test(start_paused = true)]
async fn what_is_released_meanwhile_is_not_put_back_late() {
    for pause in 0..60 {
        let (peers, quorum) = trusting(3, 20 + pause);
        let (target, owner) = (mutex("job"), OwnerId::generate());
        let _ = quorum.attempt(&attempt(&target, &owner)).await.unwrap();
        all_answered(&peers, &quorum, 3).await;
        peers[2].delay(Duration::from_millis(20));
        assert!(peers[2].store.forget(&target));
        let extend = ExtendRequest::new(target.clone(), owner.clone(), LEASE);
        let answers = quorum.extend(&[extend], soon()).await;
        assert_eq!(answers[0].as_ref().unwrap(), &ExtendOutcome::Extended);
        sleep(Duration::from_millis(pause)).await;
        let released = quorum.release(&release(&target, &owner)).await.unwrap();
        assert_eq!(released, ReleaseOutcome::Released);
        let begun = Instant::now();
        settled(&peers, &quorum).await;
        assert!(begun.elapsed() < LEASE / 2, "lapsed, {pause}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_majority_lost_is_lost_and_not_put_back() {
    let (peers, _quorum, _locks, guard) = held_by_three(12).await;
    assert!(peers[0].store.forget(&mutex("job")) && peers[1].store.forget(&mutex("job")));
    let begun = Instant::now();
    assert_eq!(guard.lost().await, LostCause::Missing);
    assert!(begun.elapsed() < LEASE / 2);
    assert_eq!(holders(&peers[..2]), 0);
}

#[tokio::test(start_paused = true)]
async fn extensions_of_many_locks_are_answered_one_by_one() {
    let (peers, quorum) = trusting(3, 13);
    let owner = OwnerId::generate();
    let targets: Vec<_> = ["a", "bb", "c", "dd", "eee"].map(mutex).into();
    for target in &targets[..4] {
        let _ = quorum.attempt(&attempt(target, &owner)).await.unwrap();
    }
    all_answered(&peers, &quorum, 12).await;
    // Another owner has the third lock on two nodes; the fourth lease is too long.
    for peer in &peers[..2] {
        let _ = peer
            .store
            .release(&release(&targets[2], &owner))
            .await
            .unwrap();
        let other = attempt(&targets[2], &OwnerId::generate());
        let _ = peer.store.attempt(&other).await.unwrap();
    }
    // The fifth lock is free, but an earlier holder's release has not reached the last node yet.
    let other = attempt(&targets[4], &OwnerId::generate());
    let _ = peers[2].store.attempt(&other).await.unwrap();
    let mut batch: Vec<_> = targets
        .iter()
        .map(|target| ExtendRequest::new(target.clone(), owner.clone(), LEASE))
        .collect();
    batch[3].lease = Duration::from_secs(3600);
    let mut answers = quorum.extend(&batch, soon()).await.into_iter();
    let mut next = || answers.next().unwrap();
    assert_eq!(next().unwrap(), ExtendOutcome::Extended);
    assert_eq!(next().unwrap(), ExtendOutcome::Extended);
    assert_eq!(next().unwrap(), ExtendOutcome::TakenOver);
    assert_eq!(next().unwrap_err().kind(), BackendErrorKind::Refused);
    assert_eq!(next().unwrap(), ExtendOutcome::Missing);
}

#[tokio::test(start_paused = true)]
async fn the_state_is_that_of_a_majority() {
    let (peers, quorum) = trusting(3, 14);
    let (target, owner) = (mutex("job"), OwnerId::generate());
    let _ = peers[0]
        .store
        .attempt(&attempt(&target, &owner))
        .await
        .unwrap();
    let state = quorum.inspect(&target, soon()).await.unwrap();
    assert_eq!(state.holder(), None);
    sleep(SECOND).await;
    let _ = peers[1]
        .store
        .attempt(&attempt(&target, &owner))
        .await
        .unwrap();
    let state = quorum.inspect(&target, soon()).await.unwrap();
    let holder = state.holder().unwrap();
    let expected = (&owner, Some(LEASE - SECOND));
    assert_eq!((&holder.owner, holder.remaining), expected);
    peers[2].kill();
    let views = quorum.inspect_nodes(&target, soon()).await.unwrap();
    let seen: Vec<_> = views
        .iter()
        .map(|view| {
            (
                view.label.as_str(),
                view.state.as_ref().map(|s| s.holders.len()).ok(),
            )
        })
        .collect();
    assert_eq!(seen, [("a", Some(1)), ("b", Some(1)), ("c", None)]);
    peers[1].kill();
    let error = quorum.inspect(&target, soon()).await.unwrap_err();
    assert_eq!(error.kind(), BackendErrorKind::NoQuorum);
}

#[tokio::test(start_paused = true)]
async fn a_forced_release_reaches_every_node_and_fences_the_holder() {
    let (peers, quorum, locks, guard) = held_by_three(15).await;
    let eviction = quorum.evict(&mutex("job"), soon()).await.unwrap();
    assert_eq!(eviction.evicted, [guard.owner_id().clone()]);
    assert!(eviction.fence > guard.token());
    assert_eq!(holders(&peers), 0);
    let next = locks.mutex("job").acquire().await.unwrap();
    assert!(next.token() > eviction.fence);
    assert!(matches!(
        guard.lost().await,
        LostCause::TakenOver | LostCause::Missing
    ));
}

#[tokio::test(start_paused = true)]
async fn lists_join_those_of_a_majority() {
    let (peers, quorum) = trusting(3, 16);
    let names: Vec<String> = (0..250).map(|n| format!("job:{n:03}")).collect();
    for name in &names {
        let _ = quorum
            .attempt(&attempt(&mutex(name), &OwnerId::generate()))
            .await
            .unwrap();
    }
    for down in [None, Some(1)] {
        if let Some(down) = down {
            peers[down].kill();
        }
        let (mut found, mut cursor, mut pages) = (Vec::new(), None, 0);
        loop {
            let page = quorum.scan("job:", cursor, soon()).await.unwrap();
            found.extend(page.locks.into_iter().map(|lock| lock.name));
            (cursor, pages) = (page.next, pages + 1);
            if cursor.is_none() {
                break;
            }
        }
        found.sort();
        found.dedup();
        assert_eq!(found, names);
        assert_eq!(pages, 3);
    }
    peers[0].kill();
    let error = quorum.scan("job:", None, soon()).await.unwrap_err();
    assert_eq!(error.kind(), BackendErrorKind::NoQuorum);
}

#[tokio::test(start_paused = true)]
async fn one_server_votes_once() {
    let peers = peers(2, 17);
    let twin = peers[0].clone();
    let node = |peer: &Peer| Arc::new(peer.clone());
    let quorum = QuorumBackend::builder()
        .probed_node("a", node(&peers[0]), node(&peers[0]))
        .probed_node("b", node(&peers[1]), node(&peers[1]))
        .probed_node("a-again", node(&twin), node(&twin))
        .build()
        .unwrap();
    let diagnosis = quorum.diagnose(soon()).await.unwrap();
    let danger = &diagnosis.findings[0];
    let expected = (Severity::Danger, "independent");
    assert_eq!((danger.severity, danger.check), expected);
    assert!(danger.message.contains("a and a-again"), "{danger}");
    peers[1].kill();
    let owner = OwnerId::generate();
    let error = quorum
        .attempt(&attempt(&mutex("job"), &owner))
        .await
        .unwrap_err();
    assert!(error.message().contains("the same server as a"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_would_not_be_sound_is_refused_with_a_reason() {
    let peers = peers(3, 18);
    let locks = locks(trusted(&peers).build().unwrap());
    let error = locks.lock("job").try_acquire().await.unwrap_err();
    let LockError::Name(NameError::UnsupportedKind { kind, reason, .. }) = &error else {
        panic!("{error:?}");
    };
    assert_eq!(kind, &LockKind::Reentrant);
    assert!(reason.contains("use `mutex`"), "{error}");
    let quorum = trusted(&peers).build().unwrap();
    for kind in LockKind::all()
        .into_iter()
        .filter(|kind| kind.profile().is_none())
    {
        let target = LockTarget::new(LockName::new("job").unwrap(), kind);
        assert!(quorum.check(&target).is_err(), "{target}");
        let error = quorum
            .attempt(&attempt(&target, &OwnerId::generate()))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), BackendErrorKind::Unsupported);
    }
    let request = locks.mutex("job").fixed_lease(SECOND * 61);
    let error = request.acquire().await.unwrap_err();
    let (kind, message) = backend_error(&error);
    assert_eq!(kind, BackendErrorKind::Refused);
    assert!(message.contains("max_lease"), "{message}");
}

#[test]
fn impossible_quorums_are_refused() {
    let node = || Arc::new(MemoryBackend::new()) as DynBackend;
    let same = node();
    let (a, b, c) = (node(), node(), node());
    let builders = [
        (QuorumBackend::builder().node("a", node()), "nodes"),
        (
            ["a", "b", "c", "d"]
                .into_iter()
                .fold(QuorumBackend::builder(), |q, label| q.node(label, node())),
            "nodes",
        ),
        (
            QuorumBackend::builder()
                .node("a", node())
                .node("a", node())
                .node("b", node()),
            "node",
        ),
        (
            QuorumBackend::builder()
                .node("a", same.clone())
                .node("b", same)
                .node("c", node()),
            "node",
        ),
        (
            QuorumBackend::builder()
                .node("a", a)
                .node("b", b)
                .node("c", c)
                .node_timeout(Duration::ZERO),
            "node_timeout",
        ),
    ];
    for (builder, option) in builders {
        assert_eq!(builder.build().unwrap_err().option, option);
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_at_any_point_it_leaves_nothing() {
    let mut cuts = 0;
    for trouble in 0..4 {
        for polls in 0..200 {
            let (peers, quorum) = probing(5, 100 + trouble);
            let locks: Locktopus = quorum_common::locks(quorum.clone());
            for (index, peer) in peers.iter().enumerate() {
                peer.delay(Duration::from_millis(5 + index as u64));
                peer.lose(if trouble == 1 { 300 } else { 0 });
            }
            if trouble == 2 {
                peers[0].freeze(true);
                peers[1].kill();
            }
            if trouble == 3 {
                // Another owner blocks the lock on two nodes.
                for peer in &peers[..2] {
                    let other = attempt(&mutex("job"), &OwnerId::generate());
                    let brief = AcquireAttempt {
                        lease: Duration::from_millis(60),
                        ..other
                    };
                    let _ = peer.store.attempt(&brief).await.unwrap();
                }
            }
            let request = locks
                .mutex("job")
                .renewed_lease(LEASE)
                .wait_at_most(SECOND / 2);
            let work = async {
                let guard = request.acquire().await.ok()?;
                guard.release().await.ok()
            };
            let completed = cut(polls, work).await.is_some();
            peers[0].freeze(false);
            peers[1].revive();
            for peer in &peers {
                peer.lose(0);
            }
            let begun = Instant::now();
            settled(&peers, &quorum).await;
            until("no tasks", || locks.background_tasks() == 0).await;
            assert!(begun.elapsed() < LEASE / 2, "lapsed, {trouble} {polls}");
            cuts += 1;
            if completed {
                break;
            }
        }
    }
    assert!(cuts > 40, "{cuts}");
}

/// If so many nodes use the name as another kind that no majority is left, the error comes at once
/// and is not retried.
#[tokio::test(start_paused = true)]
async fn a_name_in_use_as_another_kind_is_told() {
    let (peers, quorum) = trusting(5, 40);
    let lock = LockTarget::new(LockName::new("job").unwrap(), LockKind::Reentrant);
    let held = attempt(&lock, &lock.kind().new_owner());
    for (number, peer) in peers.iter().enumerate() {
        let asked = attempt(&mutex("job"), &OwnerId::generate());
        let answer = quorum.attempt(&asked).await;
        if number < 3 {
            let granted = matches!(answer, Ok(AttemptOutcome::Granted { .. }));
            assert!(granted, "{number} nodes in use: {answer:?}");
            let _ = quorum.release(&release(&asked.target, &asked.owner)).await;
            settled_but(&peers, &quorum, number).await;
        } else {
            assert_eq!(answer.unwrap_err().kind(), BackendErrorKind::OtherKind);
            let seen = quorum.inspect(&asked.target, soon()).await;
            assert_eq!(seen.unwrap_err().kind(), BackendErrorKind::OtherKind);
        }
        let _ = peer.store.attempt(&held).await.unwrap();
    }
    let begun = Instant::now();
    let waited = locks(quorum).mutex("job").acquire().await.unwrap_err();
    assert!(waited.other_kind().is_some(), "{waited:?}");
    assert!(begun.elapsed() < SECOND, "{:?}", begun.elapsed());
}

async fn settled_but(peers: &[Peer], quorum: &QuorumBackend, expected: usize) {
    until("only the other kind is left", || {
        holders(peers) == expected && quorum.background_tasks() == 0
    })
    .await;
}
