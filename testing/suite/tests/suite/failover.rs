//! Servers die, freeze, restart, fill up and lose data while locks are held and waited for.

#[path = "failover/busy.rs"]
mod busy;
use crate::common;
#[path = "failover/crash.rs"]
mod crash;
#[path = "failover/crowd.rs"]
mod crowd;
#[path = "failover/forgetful.rs"]
mod forgetful;
#[path = "failover/frozen.rs"]
mod frozen;
#[path = "failover/full.rs"]
mod full;
#[path = "failover/holder.rs"]
mod holder;
#[path = "failover/late.rs"]
mod late;
#[path = "failover/prober.rs"]
mod prober;
#[path = "failover/queue.rs"]
mod queue;
#[path = "failover/restart.rs"]
mod restart;

use common::{At, each_client_alone};
use locktopus_servers::topology::TopologyKind;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_promote_a_replica() {
    crash::of_a_primary(TopologyKind::SENTINEL).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_promotes_a_replica() {
    crash::of_a_primary(TopologyKind::CLUSTER).await;
}

const WATCHED: TopologyKind = TopologyKind::Sentinel {
    replicas: 1,
    sentinels: 3,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn busy_locks_outlive_an_order_to_the_sentinels() {
    each_client_alone(WATCHED, "busy", busy::locks_change_hands).await;
    each_client_alone(WATCHED, "halves", busy::both_halves_change_hands).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn busy_locks_outlive_a_takeover() {
    each_client_alone(TopologyKind::CLUSTER, "busy", busy::locks_change_hands).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_server() {
    on_a_server_each("frozen", frozen::and_thawed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_whose_server_dies() {
    on_a_server_each("crowd", crowd::in_the_middle).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_attempt_takes_nothing() {
    on_a_server_each("late attempt", frozen::late_attempt).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attempts_that_outlive_their_connection() {
    on_a_server_each("late attempts", late::attempts).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_server() {
    on_a_server_each("restart", restart::while_waiting).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_flushed() {
    on_a_server_each("scripts flushed", forgetful::scripts).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_flushed() {
    on_a_server_each("everything flushed", forgetful::everything).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_server() {
    on_a_server_each("full", full::of_data).await;
    on_a_server_each("full, but read", full::can_be_read).await;
}

async fn on_a_server_each<F>(what: &str, case: fn(At) -> F)
where
    F: Future<Output = String> + 'static,
{
    each_client_alone(TopologyKind::Standalone, what, case).await;
}
