//! Both clients: changing logins, refusing servers, dropped requests.

#[path = "clients/cluster_node.rs"]
mod cluster_node;
use crate::common;
#[path = "clients/deaf.rs"]
mod deaf;
#[path = "clients/dropped.rs"]
mod dropped;
#[path = "clients/full.rs"]
mod full;
#[path = "clients/rotated.rs"]
mod rotated;

use std::sync::Arc;

use common::{CLIENTS, Cases, ONE_SENTINEL, SHARDS, each_client, each_client_on, servers};
use locktopus_servers::topology::TopologyKind;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passwords_are_rotated_while_locks_are_held() {
    let mut cases = Cases::new();
    for kind in [TopologyKind::Standalone, ONE_SENTINEL, SHARDS] {
        let case = |client| rotated::locks_outlive_passwords(kind, client);
        cases.each(&kind.to_string(), case);
    }
    cases.all_pass().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_of_a_cluster_is_no_single_server() {
    let place = Arc::new(servers(SHARDS).await);
    each_client_on(&place, "node", cluster_node::is_found_and_final).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_too_many_clients_says_so() {
    each_client("full", full::says_so).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_may_not_subscribe_polls_in_turn() {
    for (client, fair) in CLIENTS.into_iter().zip([true, false]) {
        println!("{client}: {}", deaf::polls_in_turn(client, fair).await);
        println!("{client}: {}", deaf::polls_in_turn(client, !fair).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn futures_that_are_dropped_leave_no_backlog() {
    for client in CLIENTS {
        println!("{client}: {}", dropped::leave_no_backlog(client).await);
        println!("{client}: {}", dropped::owe_little(client).await);
    }
}
