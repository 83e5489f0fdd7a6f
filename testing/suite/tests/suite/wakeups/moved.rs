//! A slot moves to another node while clients wait for a lock in it.

use std::time::Duration;

use locktopus::WaitStrategy;
use locktopus_servers::topology::{Deployment, Node, slot_of};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, timeout};

use crate::common::{
    HANDED, HANDED_LEASE, LONG, ONLY_MESSAGES, SOON, becomes, close_both, eventually, locks, unique,
};
use crate::wakeups::{At, channel, subscriptions, waiting};

const LEASE: Duration = Duration::from_secs(80);

/// One client learns of the move only by asking, which the hub does every five seconds.
const NOTICED_WITHIN: Duration = Duration::from_secs(10);

/// When the lock is released.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Released {
    AfterTheMove,
    HalfWay,
}

pub(crate) async fn then_released(at: At) -> String {
    scenario(at, ONLY_MESSAGES, Released::AfterTheMove).await
}

pub(crate) async fn released_half_way(at: At) -> String {
    scenario(at, ONLY_MESSAGES, Released::HalfWay).await
}

pub(crate) async fn with_its_queue(at: At) -> String {
    scenario(at, HANDED, Released::AfterTheMove).await
}

pub(crate) async fn with_its_queue_half_way(at: At) -> String {
    scenario(at, HANDED, Released::HalfWay).await
}

async fn scenario((place, client): At, strategy: WaitStrategy, when: Released) -> String {
    let name = unique("moved");
    let holders = locks(&place, client).await;
    let others = locks(&place, client).await;
    let request = holders.lock(&name).fixed_lease(LEASE);
    let guard = request.acquire().await.unwrap();
    let token = guard.token().unwrap();
    let request = others
        .lock(&name)
        .strategy(strategy)
        .fixed_lease(HANDED_LEASE);
    let waiter = tokio::spawn(async move { (request.acquire().await.unwrap(), Instant::now()) });
    let subscribed = async || subscriptions(&place, &[channel(&name)]).await;
    becomes("a subscription", SOON, 1, subscribed).await;
    let queued = strategy == HANDED;
    waiting(&others, &name, usize::from(queued)).await;

    let migration = Migration::begin(&place, &name).await;
    let released = match when {
        Released::AfterTheMove => {
            migration.end().await;
            let released = Instant::now();
            guard.release().await.unwrap();
            released
        }
        // The keys are gone from the old node, and the new one does not serve the slot yet.
        Released::HalfWay => {
            let released = Instant::now();
            guard.release().await.unwrap();
            migration.end().await;
            released
        }
    };
    let served = timeout(LONG, waiter).await.expect("the waiter is served");
    let (guard, served) = served.unwrap();
    let took = served.saturating_duration_since(released);
    assert!(took < NOTICED_WITHIN, "{took:?}");
    assert!(
        guard.token().unwrap() > token,
        "the token moved with the lock"
    );
    guard.release().await.unwrap();
    close_both(holders, others).await;
    format!("served {took:.2?} after the release")
}

/// Slots move one at a time. A node that takes a slot over picks the highest epoch it knows of; if
/// another one does so at the same moment, the old owner can win the slot back, and its keys are
/// deleted.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// A slot on its way, with the steps of every cluster tool.
pub(crate) struct Migration<'a> {
    _turn: MutexGuard<'static, ()>,
    place: &'a Deployment,
    from: &'a Node,
    to: &'a Node,
    slot: String,
}

impl<'a> Migration<'a> {
    /// Opens the slot and moves its keys.
    async fn begin(place: &'a Deployment, name: &str) -> Self {
        let from = place.primary_for(name).await.unwrap();
        let other = |node: &&Node| node.name() != from.name();
        let to = place.nodes().iter().find(other).unwrap();
        let migration = Self::open(place, name, to).await;
        while migration.move_a_key().await {}
        migration
    }

    /// Opens the slot; its keys stay for now.
    pub(crate) async fn open(place: &'a Deployment, name: &str, to: &'a Node) -> Self {
        let turn = ONE_AT_A_TIME.lock().await;
        let from = place.primary_for(name).await.unwrap();
        let slot = slot_of(name).to_string();
        let (from_id, to_id) = (id(from).await, id(to).await);
        let set = |state, id| ["CLUSTER", "SETSLOT", &slot, state, id];
        to.command(&set("IMPORTING", &from_id)).await.unwrap();
        from.command(&set("MIGRATING", &to_id)).await.unwrap();
        Self {
            _turn: turn,
            place,
            from,
            to,
            slot,
        }
    }

    /// Moves one key; false if there was none left.
    pub(crate) async fn move_a_key(&self) -> bool {
        let port = self.to.addr().port().to_string();
        let listed = ["CLUSTER", "GETKEYSINSLOT", &self.slot, "1"];
        let keys = self.from.command(&listed).await.unwrap();
        let Some(key) = keys.items().first() else {
            return false;
        };
        let words = ["MIGRATE", "127.0.0.1", &port, &key.text(), "0", "15000"];
        self.from.command(&words).await.unwrap();
        true
    }

    /// Hands the slot over: the new owner first, the old one next.
    pub(crate) async fn end(self) {
        let to_id = id(self.to).await;
        let assign = ["CLUSTER", "SETSLOT", &self.slot, "NODE", &to_id];
        self.to.command(&assign).await.unwrap();
        self.from.command(&assign).await.unwrap();
        for node in self.place.nodes() {
            node.command(&assign).await.unwrap();
        }
        eventually("one epoch everywhere", SOON, async || {
            let mut epochs = Vec::new();
            for node in self.place.nodes() {
                epochs.push(epoch(node).await);
            }
            epochs
                .iter()
                .all(|epoch| *epoch == epochs[0])
                .then_some(())
                .ok_or(epochs)
        })
        .await;
    }
}

async fn epoch(node: &Node) -> Option<String> {
    let text = node.command(&["CLUSTER", "INFO"]).await.unwrap().text();
    let field = |line: &str| {
        line.strip_prefix("cluster_current_epoch:")
            .map(str::to_owned)
    };
    text.lines().find_map(field)
}

async fn id(node: &Node) -> String {
    node.command(&["CLUSTER", "MYID"]).await.unwrap().text()
}
