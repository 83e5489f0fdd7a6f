//! The conformance suite on a quorum of real servers, used by clients of both libraries.

use std::sync::Arc;
use std::time::Duration;

use locktopus::{DynBackend, LockTarget, QuorumBackend};
use locktopus_conformance::{Flavour, Suite};
use locktopus_protocol::Keys;
use locktopus_servers::topology::Deployment;

use super::{BOTH, PATIENCE, open, passed, run};
use crate::common::url;

/// Longer than any lease that a case requests.
const LONGEST: Duration = Duration::from_secs(2 * 24 * 60 * 60);
/// The time limit of a node; a lease must be ten times as long.
const NODE: Duration = Duration::from_secs(3);
/// Each case calls every node.
const AT_A_TIME: usize = 8;

/// Runs every case about mutexes on the quorum, and fails with the broken rules.
pub(crate) async fn passes(place: &Arc<Deployment>) {
    let report = run(suite(place)).await;
    passed(&report, place, &["a quorum"]);
}

/// As [`passes`], on nodes that are this far away.
pub(crate) async fn passes_far(place: &Arc<Deployment>, round_trip: Duration) {
    let report = run(suite(place).round_trip(round_trip)).await;
    println!("      {round_trip:?} away:");
    passed(&report, place, &["a quorum"]);
}

fn suite(place: &Arc<Deployment>) -> Suite {
    let (servers, at) = (Arc::clone(place), Arc::clone(place));
    Suite::new(move || connect(Arc::clone(&servers)))
        .wipe(move |target| delete(Arc::clone(&at), target))
        .flavours(&[Flavour::Mutex, Flavour::SingleKey])
        .quorum()
        .concurrency(AT_A_TIME)
}

/// Nodes that count as never restarted; the suite does not restart them. Nodes of `quorum_of` would
/// not vote until they have run for as long as the longest lease, and some cases have leases of a
/// day.
async fn connect(place: Arc<Deployment>) -> DynBackend {
    let mut builder = QuorumBackend::builder();
    for (node, client) in place.nodes().iter().zip(BOTH.iter().cycle()) {
        let base = format!("redis://{}", node.addr());
        let url = url(&base, &format!("client={client}&{PATIENCE}"));
        builder = builder.node(base, open(&url).await);
    }
    let quorum = builder.max_lease(LONGEST).node_timeout(NODE).build();
    Arc::new(quorum.unwrap())
}

/// Deletes a lock on every node, as an operator with a command line would.
async fn delete(place: Arc<Deployment>, target: LockTarget) {
    let key = Keys::of(&target).main().to_owned();
    let mut deleted = 0;
    for node in place.nodes() {
        let answer = node.command(&["DEL", &key]).await.unwrap();
        deleted += usize::from(answer.text() == "1");
    }
    let majority = place.nodes().len() / 2 + 1;
    assert!(deleted >= majority, "{target} was not there to be deleted");
}
