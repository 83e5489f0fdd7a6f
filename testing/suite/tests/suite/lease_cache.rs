//! Cached leases on servers: what they cost, what they leave, and who gets them back.

use crate::common;
#[path = "lease_cache/cost.rs"]
mod cost;
#[path = "lease_cache/wanted.rs"]
mod wanted;

use std::sync::Arc;
use std::time::Duration;

use common::{At, CLIENTS, Cases, one_case, servers, url_for};
use locktopus::{LockRequest, Locktopus};
use locktopus_servers::topology::TopologyKind;

/// Long enough that no heartbeat and no renewal is due within a test.
const LEASE: Duration = Duration::from_secs(90 * 12);
/// Much longer than any test takes, so another client gets the lock only if it is given back.
const KEEP: Duration = Duration::from_secs(300);

async fn locks(at: &At) -> Locktopus {
    let url = url_for(&at.0, at.1);
    locktopus::connect_with(&url, |builder| builder.renewed_lease(LEASE))
        .await
        .unwrap()
}

/// Both kinds that can be kept.
fn requests(locks: &Locktopus, name: &str) -> [LockRequest; 2] {
    [locks.lock(name), locks.mutex(format!("{name}-mutex"))]
}

async fn everything_on(kind: TopologyKind) {
    let place = Arc::new(servers(kind).await);
    for client in CLIENTS {
        let mut cases = Cases::new();
        let name = |case: &str| format!("{kind} {client} {case}");
        let at = || (Arc::clone(&place), client);
        cases.add(name("waiters"), wanted::by_a_waiter(at()));
        cases.add(name("one attempt"), wanted::by_one_attempt(at()));
        cases.add(name("a group"), wanted::by_a_group(at()));
        cases.add(name("an operator"), wanted::by_an_operator(at()));
        cases.add(name("nobody, but a shutdown"), wanted::by_nobody(at()));
        cases.all_pass().await;
    }
}

common::on_one_server_and_on_a_cluster!(everything_on);

/// Counts every script on the server and cuts its connections, so it needs its own server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn alone_on_a_server() {
    for client in CLIENTS {
        let place = Arc::new(servers(TopologyKind::Standalone).await);
        let at = || (Arc::clone(&place), client);
        one_case(format!("{client} commands"), cost::of_taking_again(at())).await;
        one_case(format!("{client} cut off"), wanted::perhaps(at())).await;
    }
}
