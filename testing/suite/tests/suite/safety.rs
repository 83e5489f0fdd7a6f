//! The safety modes: what they refuse, what they hold back, and that the rules of locks hold in
//! each.

use crate::common;
use crate::conformance;
#[path = "safety/held_back.rs"]
mod held_back;
#[path = "safety/moved.rs"]
mod moved;
#[path = "safety/quarantine.rs"]
mod quarantine;
#[path = "safety/replicated.rs"]
mod replicated;

use std::sync::Arc;

use common::{each_client, each_client_alone, each_client_on, one_case, servers};
use conformance::{ONE, passes_with};
use locktopus::{ConnectError, SafetyMode};
use locktopus_servers::topology::TopologyKind;

const WITH_A_REPLICA: TopologyKind = TopologyKind::Sentinel {
    replicas: 1,
    sentinels: 1,
};

/// A primary with two replicas, and no sentinel that would replace it.
const WITH_REPLICAS: TopologyKind = TopologyKind::Sentinel {
    replicas: 2,
    sentinels: 1,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicated_locks_are_locks() {
    let place = Arc::new(servers(WITH_A_REPLICA).await);
    for clients in ONE {
        passes_with(replicated::EASY, &place, clients).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicated_on_every_shard() {
    let place = Arc::new(servers(TopologyKind::CLUSTER).await);
    each_client_on(&place, "shards", replicated::on_every_shard).await;
}

/// Each client has its own servers, as frozen replicas affect every client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_replicas_do_not_confirm_is_not_granted() {
    let case = replicated::replicas_missing;
    each_client_alone(WITH_REPLICAS, "replicas missing", case).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quarantined_locks_are_locks() {
    for clients in ONE {
        let place = Arc::new(servers(TopologyKind::Standalone).await);
        quarantine::vouch(&place, quarantine::SUITE_LEASE).await;
        passes_with(quarantine::SUITE, &place, clients).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quarantine_holds_everything_back() {
    let place = Arc::new(servers(TopologyKind::Standalone).await);
    one_case("every script", held_back::by_every_script(place)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_begins_a_quarantine() {
    let case = quarantine::of_a_restarted_server;
    each_client_alone(TopologyKind::Standalone, "restart", case).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_begins_a_quarantine() {
    each_client("promotion", quarantine::of_a_promoted_replica).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_in_a_cluster_begins_a_quarantine() {
    each_client("promotion of a shard", quarantine::of_a_promoted_shard).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quarantine_needs_to_know_the_history() {
    quarantine::without_info().await;
}

#[tokio::test]
async fn a_node_of_a_quorum_has_no_mode_of_its_own() {
    let nodes = [1, 2, 3].map(|port| format!("redis://127.0.0.1:{port}?safety=replicated"));
    let error = locktopus::connect_quorum(&nodes).await.unwrap_err();
    let ConnectError::NodeWithMode { mode, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(*mode, "replicated");
    let nodes = [1, 2, 3].map(|port| format!("redis://127.0.0.1:{port}"));
    let locks = locktopus::connect_quorum(&nodes).await.unwrap();
    assert_eq!(locks.backend().safety, SafetyMode::Quorum);
}
