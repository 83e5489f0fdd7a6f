//! Jobs on a quorum: each run begins once, with any majority.
//!
//! Times are real, because runs are due by the wall clock. Most are past when the job starts.

use crate::quorum_common;

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use locktopus_core::{CancellationToken, LockError, Locktopus};
use locktopus_recipes::{CatchUp, Job, Tick};
use quorum_common::{Peer, holders, locks, peers, trusted, until};
use tokio::time::{sleep, timeout};

const SOON: Duration = Duration::from_secs(20);
const PERIOD: Duration = Duration::from_millis(150);

/// An instance with its own connection to the nodes.
fn instance(peers: &[Peer]) -> Locktopus {
    locks(trusted(peers).build().unwrap())
}

/// Half a minute ago, to the millisecond.
fn a_while_ago() -> SystemTime {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap();
    let millis = u64::try_from(since.as_millis()).unwrap();
    SystemTime::UNIX_EPOCH + Duration::from_millis(millis) - Duration::from_secs(30)
}

/// How many runs this instance begins, of a job that was due only at this time and is not late yet.
async fn begins(locks: &Locktopus, due: SystemTime) -> usize {
    let job = Job::new(locks, "j").at_times([due]);
    let mut begun = 0;
    let all = job.tolerance(Duration::from_secs(3_600)).run(|tick| {
        assert!(tick.token().is_some());
        begun += 1;
        std::future::ready(())
    });
    timeout(SOON, all).await.expect("the job ends").unwrap();
    begun
}

#[tokio::test]
async fn three_instances_begin_each_run_once_and_in_order_while_nodes_come_and_go() {
    let peers = peers(3, 80);
    let (ticks, stop) = (Arc::<Mutex<Vec<Tick>>>::default(), CancellationToken::new());
    let instances: Vec<_> = [(); 3]
        .iter()
        .map(|()| {
            let job = Job::new(&instance(&peers), "j").every(PERIOD);
            let job = job
                .catch_up(CatchUp::All { at_most: 5 })
                .cancel_on(stop.clone());
            let ticks = Arc::clone(&ticks);
            tokio::spawn(job.run(move |tick| {
                ticks.lock().unwrap().push(tick);
                sleep(Duration::from_millis(20))
            }))
        })
        .collect();
    let ran = || ticks.lock().unwrap().len();
    // One node is away for two runs, then another: no majority is the same as before.
    for node in [0, 1, 2, 0, 1] {
        let before = ran();
        peers[node].kill();
        until("two runs", || ran() >= before + 2).await;
        peers[node].revive();
    }
    stop.cancel();
    for instance in instances {
        let ended = instance.await.unwrap();
        assert!(
            matches!(ended, Err(LockError::Cancelled { .. })),
            "{ended:?}"
        );
    }
    let ticks = ticks.lock().unwrap();
    assert!(
        ticks.is_sorted_by(|a, b| a.scheduled_at() < b.scheduled_at() && a.token() < b.token()),
        "{ticks:?}"
    );
}

/// If two of three nodes noted a run, any two nodes know it.
#[tokio::test]
async fn a_run_that_a_bare_majority_noted_is_begun_for_every_majority() {
    let peers = peers(3, 81);
    let due = a_while_ago();
    peers[2].kill();
    assert_eq!(begins(&instance(&peers), due).await, 1);
    peers[2].revive();
    for away in [0, 1] {
        peers[away].kill();
        assert_eq!(begins(&instance(&peers), due).await, 0, "without {away}");
        peers[away].revive();
    }
}

/// A node that lost its data votes again after the longest lease, which is sooner than runs are
/// forgotten. The nodes that noted the run beyond the majority make up for the loss.
#[tokio::test]
async fn a_run_that_all_nodes_noted_stays_begun_when_one_of_them_forgets() {
    let peers = peers(3, 82);
    let due = a_while_ago();
    let first = instance(&peers);
    assert_eq!(begins(&first, due).await, 1);
    until("given back", || holders(&peers) == 0).await;
    peers[0].store.clear();
    for away in [1, 2] {
        peers[away].kill();
        assert_eq!(begins(&instance(&peers), due).await, 0, "without {away}");
        peers[away].revive();
    }
}

/// The reason why the docs say that the nodes of a quorum must keep their data: the lock stays
/// exclusive, but the run is forgotten.
#[tokio::test]
async fn a_run_that_a_bare_majority_noted_is_begun_again_when_one_of_them_forgets() {
    let peers = peers(3, 83);
    let due = a_while_ago();
    peers[2].kill();
    assert_eq!(begins(&instance(&peers), due).await, 1);
    peers[2].revive();
    peers[1].store.clear();
    peers[0].kill();
    assert_eq!(begins(&instance(&peers), due).await, 1);
}
