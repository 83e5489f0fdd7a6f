//! How long a quorum waits for nodes that are far away or hang.

use crate::quorum_common;

use std::time::Duration;

use locktopus_contract::{
    AcquireAttempt, AttemptOutcome, ExtendOutcome, ExtendRequest, LockBackend as _, OwnerId,
};
use locktopus_core::Locktopus;
use quorum_common::{locks, mutex, peers, probed, trusted};
use tokio::time::Instant;

const LEASE: Duration = Duration::from_secs(30);
/// How long a call to these nodes may take, as they declare it.
const CALL: Duration = Duration::from_millis(100);

fn attempt(owner: &OwnerId, lease: Duration) -> AcquireAttempt {
    let deadline = Instant::now() + Duration::from_secs(5);
    AcquireAttempt::new(mutex("job"), owner.clone(), lease, deadline)
}

/// Identity and grant are two answers, and each may take as long as one call.
#[tokio::test(start_paused = true)]
async fn nodes_that_must_first_say_who_they_are_have_time_for_both() {
    let peers = peers(3, 1);
    peers.iter().for_each(|peer| peer.far(CALL * 4 / 5));
    let quorum = probed(&peers).build().unwrap();
    let locks = locks(quorum);
    let limit = Duration::from_secs(2);
    let guard = locks.mutex("job").wait_at_most(limit).acquire().await;
    guard.unwrap().release().await.unwrap();
    // Every connection broke, so every node must tell its identity again.
    for peer in &peers {
        peer.kill();
        peer.revive();
    }
    let guard = locks.mutex("job").wait_at_most(limit).acquire().await;
    guard.unwrap().release().await.unwrap();
}

/// A short lease leaves little time for a call, but that does not limit the identity.
#[tokio::test(start_paused = true)]
async fn a_node_becomes_known_however_short_the_leases_are() {
    let peers = peers(3, 2);
    peers.iter().for_each(|peer| peer.far(CALL / 2));
    let quorum = probed(&peers).build().unwrap();
    let lease = CALL * 4;
    let begun = Instant::now();
    let granted = quorum.attempt(&attempt(&OwnerId::generate(), lease)).await;
    assert!(
        matches!(granted, Ok(AttemptOutcome::Granted { .. })),
        "after {:?}: {granted:?}",
        begun.elapsed()
    );
}

/// Nodes get the call time that they declare, and the caller learns how long a round may take.
#[tokio::test(start_paused = true)]
async fn nodes_have_the_time_of_their_own_calls_unless_the_quorum_says_another() {
    let peers = peers(3, 3);
    let derived = trusted(&peers).build().unwrap();
    let spare = Duration::from_millis(50);
    assert_eq!(derived.info().call_timeout, CALL * 2 + spare);
    peers.iter().for_each(|peer| peer.far(CALL * 3));
    let owner = OwnerId::generate();
    let refused = derived.attempt(&attempt(&owner, LEASE)).await;
    let said = refused.unwrap_err().to_string();
    assert!(said.contains("no answer within 1"), "{said}");

    let patient = trusted(&peers).node_timeout(CALL * 4).build().unwrap();
    assert_eq!(patient.info().call_timeout, CALL * 8 + spare);
    let another = AcquireAttempt {
        target: mutex("another job"),
        ..attempt(&owner, LEASE)
    };
    let granted = patient.attempt(&another).await;
    assert!(
        matches!(granted, Ok(AttemptOutcome::Granted { .. })),
        "{granted:?}"
    );
}

/// The shortest lease is a little over four times as long as an exchange.
#[tokio::test(start_paused = true)]
async fn a_lease_a_few_round_trips_long_can_be_had_and_renewed() {
    let peers = peers(3, 4);
    let round_trip = Duration::from_millis(150);
    peers.iter().for_each(|peer| peer.far(round_trip));
    let quorum = trusted(&peers).node_timeout(LEASE).build().unwrap();
    let (owner, lease) = (OwnerId::generate(), round_trip * 5);
    let granted = quorum.attempt(&attempt(&owner, lease)).await;
    assert!(
        matches!(granted, Ok(AttemptOutcome::Granted { .. })),
        "{granted:?}"
    );
    let batch = [ExtendRequest::new(mutex("job"), owner, lease)];
    let answers = quorum.extend(&batch, Instant::now() + LEASE).await;
    assert!(
        matches!(answers[..], [Ok(ExtendOutcome::Extended)]),
        "{answers:?}"
    );
}

/// If the others disagree, the last node decides, and the round waits for it. But not again and
/// again if it hangs.
#[tokio::test(start_paused = true)]
async fn a_node_that_hangs_makes_rounds_long_only_once() {
    let peers = peers(5, 5);
    let round_trip = Duration::from_millis(40);
    peers.iter().for_each(|peer| peer.far(round_trip));
    let timeout = Duration::from_secs(1);
    let quorum = trusted(&peers).node_timeout(timeout).build().unwrap();
    let other = OwnerId::generate();
    for peer in &peers[..2] {
        let _ = peer.store.attempt(&attempt(&other, LEASE)).await.unwrap();
    }
    peers[4].freeze(true);
    let round = async || {
        let begun = Instant::now();
        let owner = OwnerId::generate();
        let lost = quorum.attempt(&attempt(&owner, LEASE)).await;
        assert!(
            !matches!(lost, Ok(AttemptOutcome::Granted { .. })),
            "{lost:?}"
        );
        begun.elapsed()
    };
    let first = round().await;
    assert!(first >= timeout, "{first:?}: it might have answered");
    let second = round().await;
    assert!(second < timeout / 2, "{second:?}: it hung the last time");
    // Once it is back and clean of late requests, rounds wait for it as for any other node.
    peers[4].freeze(false);
    let end = Instant::now() + LEASE / 2;
    let mut granted = quorum.attempt(&attempt(&OwnerId::generate(), LEASE)).await;
    while !matches!(granted, Ok(AttemptOutcome::Granted { .. })) && Instant::now() < end {
        granted = quorum.attempt(&attempt(&OwnerId::generate(), LEASE)).await;
    }
    assert!(
        matches!(granted, Ok(AttemptOutcome::Granted { .. })),
        "{granted:?}"
    );
}

/// A client's first grant takes two round trips, for identities and for the lock, out of the little
/// over four that its lease lasts. The rest is enough for a renewal only if it counts from when the
/// lease does.
#[tokio::test(start_paused = true)]
async fn a_lock_is_kept_whose_lease_is_a_few_round_trips_long() {
    let peers = peers(3, 6);
    let round_trip = Duration::from_millis(240);
    peers.iter().for_each(|peer| peer.far(round_trip));
    let quorum = probed(&peers).node_timeout(LEASE).build().unwrap();
    let lease = round_trip * 25 / 6;
    let locks = Locktopus::builder(quorum).renewed_lease(lease);
    let locks = locks.build().unwrap();
    let guard = locks.mutex("job").acquire().await.unwrap();
    for _ in 0..20 {
        tokio::time::sleep(lease / 4).await;
        guard.ensure_valid().unwrap();
    }
    guard.release().await.unwrap();
}
