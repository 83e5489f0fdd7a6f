//! Young nodes of a quorum. They tell their uptime in whole seconds, as servers do, and must tell
//! it again and again.

use crate::quorum_common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use locktopus_contract::{BackendError, NodeIdentity, NodeProbe};
use locktopus_core::Locktopus;
use locktopus_quorum::{QuorumBackend, QuorumBuilder};
use quorum_common::{Peer, locks, peers};
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);

/// A server that tells its uptime like Redis: the difference of two readings of a clock with whole
/// seconds. The backend subtracts one second.
#[derive(Debug)]
struct WholeSeconds {
    peer: Peer,
    /// The server's clock at `begun`.
    phase: Duration,
    begun: Instant,
}

#[async_trait]
impl NodeProbe for WholeSeconds {
    fn generation(&self) -> u64 {
        self.peer.generation()
    }

    async fn identity(&self, deadline: Instant) -> Result<NodeIdentity, BackendError> {
        let exact = self.peer.identity(deadline).await?;
        // Far enough from zero for any uptime of these tests.
        let clock = SECOND * 1_000_000_000 + self.begun.elapsed() + self.phase;
        let up = clock.as_secs() - (clock - exact.uptime).as_secs();
        let up = Duration::from_secs(up.saturating_sub(1));
        Ok(NodeIdentity::new(exact.run_id, up))
    }
}

/// Nodes whose clocks begin their seconds at the same moment.
fn whole_seconds(peers: &[Peer], phase: Duration) -> QuorumBuilder {
    let begun = Instant::now();
    let nodes = peers.iter().zip(["a", "b", "c"]);
    nodes.fold(QuorumBackend::builder(), |builder, (peer, label)| {
        let probe = WholeSeconds {
            peer: peer.clone(),
            phase,
            begun,
        };
        builder.probed_node(label, Arc::new(peer.clone()), Arc::new(probe))
    })
}

/// The connection breaks and returns at once. The server notices nothing.
fn blip(peer: &Peer) {
    peer.kill();
    peer.revive();
}

/// Two of three nodes are up, so both must vote, and one of them started a while ago. It must tell
/// its identity again and again.
async fn kept_for(max_lease: Duration, lease: Duration, phase: Duration) {
    let peers = peers(3, 1);
    let quorum = whole_seconds(&peers, phase).max_lease(max_lease);
    let locks = Locktopus::builder(quorum.build().unwrap()).renewed_lease(lease);
    let locks = locks.build().unwrap();
    peers[2].kill();
    peers[0].restart_empty();
    let began = Instant::now();
    let guard = loop {
        if let Ok(Some(guard)) = locks.mutex("job").try_acquire().await {
            break guard;
        }
        sleep(Duration::from_millis(20)).await;
    };
    let after = began.elapsed();
    assert!(after >= max_lease, "it voted after {after:?}");
    assert!(after <= max_lease + 2 * SECOND, "it voted after {after:?}");
    let end = Instant::now() + 2 * lease + SECOND;
    while Instant::now() < end {
        blip(&peers[0]);
        sleep(lease / 7).await;
        guard.ensure_valid().unwrap_or_else(|lost| {
            let (up, begun) = (began.elapsed(), after);
            panic!("max_lease {max_lease:?}, phase {phase:?}: voted after {begun:?}, lost after {up:?}: {lost}")
        });
    }
    guard.release().await.unwrap();
}

/// Rounding may cost a second. A lock with a longer lease is kept and a voting node keeps voting,
/// wherever in its second the client asks, and for any fraction of a second in the longest lease.
#[tokio::test(start_paused = true)]
async fn being_asked_again_and_again_who_it_is_costs_no_lock() {
    let whole = [1_000, 2_000, 5_000].map(|longest| (longest, longest * 3 / 5));
    let parts = [400, 900, 1_500, 2_900].map(|longest| (longest, 300));
    let long = [5_000, 20_000].map(|longest| (longest, 4_000));
    for (longest, lease) in whole.into_iter().chain(parts).chain(long) {
        for tenth in 0..10 {
            let phase = Duration::from_millis(100 * tenth + 37);
            let [longest, lease] = [longest, lease].map(Duration::from_millis);
            kept_for(longest, lease, phase).await;
        }
    }
}

/// A client that connects to its server only for a question, so the question itself opens the
/// connection that carries the answer.
#[derive(Debug)]
struct Dialled {
    peer: Peer,
    /// The peer's connection at the last question, and how many were made.
    known: AtomicU64,
    made: AtomicU64,
}

#[async_trait]
impl NodeProbe for Dialled {
    fn generation(&self) -> u64 {
        self.made.load(Ordering::SeqCst)
    }

    async fn identity(&self, deadline: Instant) -> Result<NodeIdentity, BackendError> {
        let there = self.peer.generation();
        if self.known.swap(there, Ordering::SeqCst) != there {
            self.made.fetch_add(1, Ordering::SeqCst);
        }
        self.peer.identity(deadline).await
    }
}

fn dialled(peers: &[Peer]) -> QuorumBuilder {
    let nodes = peers.iter().zip(["a", "b", "c"]);
    nodes.fold(QuorumBackend::builder(), |builder, (peer, label)| {
        let probe = Dialled {
            peer: peer.clone(),
            known: AtomicU64::new(0),
            made: AtomicU64::new(0),
        };
        builder.probed_node(label, Arc::new(peer.clone()), Arc::new(probe))
    })
}

/// Every server is up and free. A missing connection is no reason to refuse.
#[tokio::test(start_paused = true)]
async fn the_first_attempt_of_a_client_is_granted() {
    let peers = peers(3, 2);
    let locks = locks(dialled(&peers).build().unwrap());
    let guard = locks.mutex("job").try_acquire().await.unwrap().unwrap();
    guard.release().await.unwrap();
}
