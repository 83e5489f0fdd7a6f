//! The conformance suite on a quorum of real servers, which clients of both libraries speak to.

use std::sync::Arc;
use std::time::Duration;

use locktopus::{DynBackend, LockTarget, QuorumBackend};
use locktopus_conformance::{Flavour, Setting, Suite};
use locktopus_protocol::Keys;
use locktopus_servers::topology::Deployment;

use super::{BOTH, PATIENCE, open, passed, run, setting};
use crate::common::url;

/// Longer than any lease that a case asks for.
const LONGEST: Duration = Duration::from_secs(2 * 24 * 60 * 60);
/// How long a node may take, of which a lease must be ten times as long.
const NODE: Duration = Duration::from_secs(3);
/// Each case speaks to every node.
const AT_A_TIME: usize = 8;

/// Runs every case about mutexes on the quorum, records what came of it, and fails with the rules
/// that are broken.
pub(crate) async fn passes(place: &Arc<Deployment>) {
    let report = run(suite(place)).await;
    let setting = Setting {
        topology: "quorum".to_owned(),
        ..setting(place, BOTH)
    };
    report.record(&setting).unwrap();
    passed(&report, place, &["a quorum"]);
}

/// As [`passes`], on nodes that are this far away, and without a record.
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

/// Nodes that count as never restarted, and are not while the suite runs. As `quorum_of` adds them
/// they would not vote before they have been up for as long as the longest lease, and there are
/// cases with leases of a day.
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

/// What an operator with a command line does to a lock, on every node.
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
