//! Redisson's objects and ours on the same names, in situations that the real Redisson of
//! `redisson_topology` does not get into: raw commands of its protocol simulate it.

use crate::common;
#[path = "wire_objects/ear.rs"]
mod ear;
#[path = "wire_objects/fair.rs"]
mod fair;
#[path = "wire_objects/fair_trouble.rs"]
mod fair_trouble;
#[path = "wire_objects/java.rs"]
mod java;
#[path = "wire_objects/turns.rs"]
mod turns;

use std::sync::Arc;
use std::time::Duration;

use common::{CLIENTS, Cases, HANDED, HANDED_LEASE, SHARDS, SOON, connect, servers, url_for};
use locktopus::{CohortSettings, LockGuard, LockRequest, Locktopus};
use locktopus_servers::topology::{Deployment, TopologyKind};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Servers, the client to use on them, and the flavour of pub/sub that all use.
#[derive(Clone)]
struct At {
    place: Arc<Deployment>,
    client: &'static str,
    pubsub: &'static str,
}

impl At {
    /// With long time limits for a busy machine: these tests are not about outages.
    fn url(&self) -> String {
        common::url(
            &url_for(&self.place, self.client),
            &format!("pubsub={}&timeout=5s", self.pubsub),
        )
    }

    async fn locks(&self) -> Locktopus {
        connect(&self.url()).await
    }

    /// Its tasks pass no lock to each other.
    async fn locks_apart(&self) -> Locktopus {
        let apart = CohortSettings {
            turns: 1,
            ..CohortSettings::default()
        };
        let url = self.url();
        let connected = locktopus::connect_with(&url, |builder| builder.cohort(apart));
        connected.await.unwrap()
    }

    /// Redisson's rule: sharded in a cluster, unless configured otherwise.
    fn is_sharded(&self) -> bool {
        matches!(self.place.kind(), TopologyKind::Cluster { .. }) && self.pubsub == "auto"
    }

    /// Plain messages in a cluster reach listeners of all nodes, which no node can count.
    fn is_uncounted(&self) -> bool {
        matches!(self.place.kind(), TopologyKind::Cluster { .. }) && self.pubsub == "plain"
    }
}

/// A waiter that only a message can serve in time, and when that was.
fn waiting(request: LockRequest) -> JoinHandle<(LockGuard, Instant)> {
    let request = request.fixed_lease(HANDED_LEASE).strategy(HANDED);
    tokio::spawn(async move { (request.acquire().await.unwrap(), Instant::now()) })
}

fn soon(since: Instant, served: Instant) -> Duration {
    let took = served.saturating_duration_since(since);
    assert!(took < SOON, "{took:?}");
    took
}

/// Starts every case for every client.
async fn everything_on(kind: TopologyKind, pubsub: &'static str) {
    let place = Arc::new(servers(kind).await);
    let mut cases = Cases::new();
    for client in CLIENTS {
        let at = At {
            place: Arc::clone(&place),
            client,
            pubsub,
        };
        macro_rules! case {
            ($($case:path),+ $(,)?) => {
                $(cases.add(format!("{kind} {client} {pubsub} {}", stringify!($case)), $case(at.clone()));)+
            };
        }
        case!(
            turns::others_get_theirs,
            turns::none_without_others,
            fair::channels_are_given_back,
            fair::list_and_deadlines_agree,
            fair_trouble::head_without_a_deadline,
            fair_trouble::many_dead_heads,
            fair_trouble::clocks_apart,
            fair_trouble::order_outlasts_a_fast_clock,
            fair_trouble::who_spins_is_not_overtaken,
            fair_trouble::called_but_not_coming,
        );
    }
    cases.all_pass().await;
    drop(place);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn standalone() {
    everything_on(TopologyKind::Standalone, "auto").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_sharded() {
    everything_on(SHARDS, "auto").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_plain() {
    everything_on(SHARDS, "plain").await;
}
