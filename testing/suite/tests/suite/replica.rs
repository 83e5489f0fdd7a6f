//! Subscriptions that ended up on a replica: no client hears of a grant that was not made, and no
//! client stays there.

use crate::common;
#[path = "replica/demoted.rs"]
mod demoted;
#[path = "replica/in_order.rs"]
mod in_order;
#[path = "replica/misled.rs"]
mod misled;
#[path = "replica/told.rs"]
mod told;

use std::sync::Arc;

use common::{CLIENTS, each_client, each_client_alone, one_case, servers};
use locktopus_servers::topology::{Deployment, Node, TopologyKind};

/// A primary and a replica, and no sentinel that would swap them.
const WITH_A_REPLICA: TopologyKind = TopologyKind::Sentinel {
    replicas: 1,
    sentinels: 1,
};

/// A few primaries, each with a replica.
const SHARDS_WITH_REPLICAS: TopologyKind = TopologyKind::Cluster {
    primaries: 3,
    replicas_each: 1,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_token_is_published_that_is_not_a_grant() {
    for kind in [WITH_A_REPLICA, SHARDS_WITH_REPLICAS] {
        let place = Arc::new(servers(kind).await);
        one_case(format!("{kind} plain"), told::by_every_script(place, "")).await;
    }
    let place = Arc::new(servers(WITH_A_REPLICA).await);
    told::vouch(&place).await;
    let case = told::by_every_script(place, told::QUARANTINE);
    one_case("quarantine", case).await;
}

/// Kills every subscription connection on the servers, so it needs its own servers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_leads_to_a_replica() {
    for (what, options) in [("plain", ""), ("quarantine", told::QUARANTINE)] {
        for client in CLIENTS {
            let place = Arc::new(servers(WITH_A_REPLICA).await);
            told::vouch(&place).await;
            let case = misled::by_its_address(Arc::clone(&place), client, options);
            one_case(format!("{client} {what}"), case).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_that_was_passed_over_subscribes_anew() {
    each_client_alone(TopologyKind::Standalone, "told so", misled::told_so).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_becomes_a_replica() {
    each_client("behind one address", demoted::behind_one_address).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orderly_failovers_grant_nothing_twice() {
    each_client("failovers", in_order::of_a_cluster).await;
}

/// The replica of a primary.
async fn replica_of<'a>(place: &'a Deployment, primary: &Node) -> &'a Node {
    for node in place.nodes() {
        let port = node.info("replication", "master_port").await.unwrap();
        if port == Some(primary.addr().port().to_string()) {
            return node;
        }
    }
    panic!("{} has no replica", primary.name());
}
