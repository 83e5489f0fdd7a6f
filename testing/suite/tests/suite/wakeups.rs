//! Waiters are served although messages and subscriptions get lost.
//!
//! Every waiter here has a heartbeat longer than the test, so being served proves that the client
//! repaired its subscription and told the waiter to check.

use crate::common;
#[path = "wakeups/crashed.rs"]
mod crashed;
#[path = "wakeups/crowd.rs"]
mod crowd;
#[path = "wakeups/handed.rs"]
mod handed;
#[path = "wakeups/killed.rs"]
mod killed;
#[path = "wakeups/moved.rs"]
mod moved;
#[path = "wakeups/moving.rs"]
mod moving;
#[path = "wakeups/others.rs"]
mod others;
#[path = "wakeups/paused.rs"]
mod paused;

use std::sync::Arc;

use common::raw::Raw;
use common::{
    At, CLIENTS, Cases, SHARDS, SOON, becomes, each_client_on, one_case, servers, servers_with,
};
use locktopus::Locktopus;
use locktopus_servers::topology::{Deployment, Knobs, TopologyKind};

/// Kills every subscription connection on the servers, so it needs its own servers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriptions_killed() {
    for kind in [TopologyKind::Standalone, SHARDS] {
        let place = Arc::new(servers(kind).await);
        for client in CLIENTS {
            let at = (Arc::clone(&place), client);
            one_case(format!("{kind} {client} killed"), killed::all(at)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slots_moved() {
    let place = Arc::new(servers(SHARDS).await);
    let mut cases = Cases::new();
    cases.each_on(&place, "slot moved", moved::then_released);
    cases.each_on(&place, "released half-way", moved::released_half_way);
    cases.each_on(&place, "slot moved with a queue", moved::with_its_queue);
    cases.each_on(
        &place,
        "handed over half-way",
        moved::with_its_queue_half_way,
    );
    cases.all_pass().await;
}

/// A slot slowly moves to a node without slots, as when a cluster grows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slots_moving_to_a_new_node() {
    let mut places = Vec::new();
    for _ in CLIENTS {
        let knobs = Knobs {
            full_coverage: false,
            ..Knobs::default()
        };
        let place = Arc::new(servers_with(SHARDS, knobs).await);
        moving::empty_the_last(&place).await;
        places.push(place);
    }
    let each = || places.iter().map(Arc::clone).zip(CLIENTS);
    let mut cases = Cases::new();
    for at in each() {
        let name = format!("{} held while its slot moves", at.1);
        cases.add(name, moving::is_held_throughout(at));
    }
    cases.all_pass().await;
    // The last node has slots by now, and must become unknown again.
    for place in &places {
        moving::empty_the_last(place).await;
    }
    let mut cases = Cases::new();
    for at in each() {
        let name = format!("{} a crowd sent on", at.1);
        cases.add(name, moving::needs_few_connections(at));
    }
    cases.all_pass().await;
}

/// Watches every command on the servers, so it needs its own servers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handed_over() {
    for kind in [TopologyKind::Standalone, SHARDS] {
        let place = Arc::new(servers(kind).await);
        for clients in [["redis", "redis"], ["fred", "fred"], CLIENTS] {
            let what = format!("{kind} {} hand-offs", clients.join(" and "));
            one_case(what, handed::cost(Arc::clone(&place), clients)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiters_that_are_gone() {
    for kind in [TopologyKind::Standalone, SHARDS] {
        let place = Arc::new(servers(kind).await);
        let mut cases = Cases::new();
        cases.each_on(&place, "dead", crashed::dead);
        cases.each_on(&place, "dead crowd", crashed::with_a_crowd);
        cases.each_on(&place, "frozen", crashed::frozen);
        cases.all_pass().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers() {
    for kind in [TopologyKind::Standalone, SHARDS] {
        let place = Arc::new(servers(kind).await);
        each_client_on(&place, "strangers", others::get_their_turn).await;
    }
}

/// These faults affect every client of the servers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_pause_and_forget() {
    for kind in [TopologyKind::Standalone, SHARDS] {
        let place = Arc::new(servers(kind).await);
        for client in CLIENTS {
            for (what, fault) in paused::FAULTS {
                let at = (Arc::clone(&place), client);
                let case = paused::while_waiting(at, fault);
                one_case(format!("{kind} {client} {what}"), case).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crowds() {
    for kind in [TopologyKind::Standalone, SHARDS] {
        let place = Arc::new(servers(kind).await);
        let mut cases = Cases::new();
        for clients in [&["redis"][..], &["fred"], &CLIENTS] {
            let what = format!("{kind} {} crowd", clients.join(" and "));
            cases.add(what, crowd::on_one_lock(Arc::clone(&place), clients));
        }
        cases.all_pass().await;
    }
}

/// How many subscriptions of these channels all nodes have together.
async fn subscriptions(place: &Deployment, channels: &[String]) -> i64 {
    let sharded = matches!(place.kind(), TopologyKind::Cluster { .. });
    let count = if sharded { "SHARDNUMSUB" } else { "NUMSUB" };
    let mut sum = 0;
    for node in place.nodes() {
        let mut raw = Raw::to(node).await;
        for channel in channels {
            // One at a time: a node refuses a question about several slots.
            match raw.say(&["PUBSUB", count, channel]).await.list() {
                [_, number] => sum += number.int(),
                other => panic!("{other:?}"),
            }
        }
    }
    sum
}

fn channel(name: &str) -> String {
    format!("redisson_lock__channel:{{{name}}}")
}

/// Returns once a lock has this many waiters in its queue.
async fn waiting(locks: &Locktopus, name: &str, count: usize) {
    let there = async || locks.lock(name).inspect().await.unwrap().waiters.len();
    becomes("waiters in the queue", SOON, count, there).await;
}
