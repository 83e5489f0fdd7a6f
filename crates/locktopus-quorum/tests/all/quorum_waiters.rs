//! RedLock: during a long wait, nodes come and go, and the waiter still gets its turn.

use crate::quorum_common;

use std::time::Duration;

use locktopus_core::{LockError, LockGuard, Locktopus};
use quorum_common::{Peer, holders, locks, peers, probed, probing, until};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

const SECOND: Duration = Duration::from_secs(1);
/// Longer than a call to a node of these tests may take.
const HANG: Duration = Duration::from_millis(1200);

/// Nodes, a holder of the lock on them, and another process that wants it.
struct Scene {
    peers: Vec<Peer>,
    holder: LockGuard,
    waiters: Locktopus,
}

impl Scene {
    async fn new(seed: u64) -> Self {
        let peers = peers(3, seed);
        let holder = locks(probed(&peers).build().unwrap());
        let holder = holder.mutex("job").acquire().await.unwrap();
        until("held everywhere", || holders(&peers) == 3).await;
        let waiters = locks(probed(&peers).build().unwrap());
        Self {
            peers,
            holder,
            waiters,
        }
    }

    /// The first node hangs until an attempt and its cleanup have failed without an answer, and
    /// comes back.
    async fn first_node_hangs(&self) {
        let before = self.peers[0].calls("release");
        self.peers[0].freeze(true);
        let hung = || self.peers[0].calls("release") > before;
        until("a release is under way", hung).await;
        sleep(HANG).await;
        self.peers[0].freeze(false);
        sleep(HANG).await;
    }

    /// The second node dies and the lock becomes free: the first and the third must be enough.
    async fn second_node_dies(self) -> Locktopus {
        self.peers[1].kill();
        self.holder.release().await.unwrap();
        self.waiters
    }
}

async fn wins(waiter: JoinHandle<Result<LockGuard, LockError>>) {
    let guard = timeout(SECOND * 5, waiter).await.expect("its turn");
    guard.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_began_before_a_node_hung_wins_with_that_node() {
    let scene = Scene::new(60).await;
    let request = scene.waiters.mutex("job");
    let waiter = tokio::spawn(async move { request.acquire().await });
    scene.first_node_hangs().await;
    let others = scene.second_node_dies().await;
    wins(waiter).await;
    let guard = others.mutex("job").acquire().await.unwrap();
    guard.release().await.unwrap();
}

/// Nor may it pass its obstacle on to the waiters behind it.
#[tokio::test(start_paused = true)]
async fn who_waits_behind_such_a_waiter_wins_when_it_gives_up() {
    let scene = Scene::new(61).await;
    let leader = scene.waiters.mutex("job").wait_at_most(SECOND * 4);
    let leader = tokio::spawn(async move { leader.acquire().await });
    let asked = || scene.peers[0].calls("attempt") > 1;
    until("the leader asks", asked).await;
    let request = scene.waiters.mutex("job");
    let behind = tokio::spawn(async move { request.acquire().await });
    scene.first_node_hangs().await;
    assert!(!leader.is_finished(), "it hung together with the node");
    let gave_up = leader.await.unwrap().unwrap_err();
    assert!(
        matches!(gave_up, LockError::WaitTimeout { .. }),
        "{gave_up}"
    );
    let _others = scene.second_node_dies().await;
    wins(behind).await;
}

/// Without retries of outages, an error of the quorum is final. A recovered node must cause none.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_well_again_is_no_missing_quorum() {
    let (peers, quorum) = probing(3, 62);
    let holder = locks(probed(&peers).build().unwrap());
    let holder = holder.mutex("job").acquire().await.unwrap();
    until("held everywhere", || holders(&peers) == 3).await;
    let waiters = Locktopus::builder(quorum).tolerate_outage(Duration::ZERO);
    let scene = Scene {
        peers,
        holder,
        waiters: waiters.build().unwrap(),
    };
    let request = scene.waiters.mutex("job");
    let waiter = tokio::spawn(async move { request.acquire().await });
    scene.first_node_hangs().await;
    let _others = scene.second_node_dies().await;
    wins(waiter).await;
}
