//! Guarded writes on real servers: an overtaken holder's write is refused. What the script says to
//! each token is in `direct` of the modelled server.

use crate::common;
#[path = "guarded/holders.rs"]
mod holders;
#[path = "guarded/keys.rs"]
mod keys;
#[path = "guarded/trouble.rs"]
mod trouble;

use std::sync::Arc;

use common::raw::Raw;
use common::{At, CLIENTS, Cases, one_case, servers, url_for};
use locktopus::{
    Fence, FencingToken, GuardedOutcome, GuardedWriter, HolderMark, LockKind, LockName, LockTarget,
};
use locktopus_protocol::RedisClient;
use locktopus_servers::topology::{Deployment, TopologyKind};

/// Starts every case for every client.
async fn everything_on(kind: TopologyKind) {
    let place = Arc::new(servers(kind).await);
    let mut cases = Cases::new();
    cases.each_on(&place, "an overtaken holder", holders::overtaken);
    cases.each_on(&place, "how long things live", keys::lifetimes);
    cases.each_on(&place, "any bytes, odd braces", keys::odd);
    cases.all_pass().await;
    // The last user's drop stops the servers.
    drop(place);
}

common::on_one_server_and_on_a_cluster!(everything_on);

/// One after the other, on their own servers: they affect every client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_trouble() {
    let place = Arc::new(servers(TopologyKind::Standalone).await);
    for client in CLIENTS {
        let at = (Arc::clone(&place), client);
        let case = trouble::forgetful_and_frozen(at);
        one_case(format!("{client} in trouble"), case).await;
    }
}

/// A client and a writer that uses it.
async fn writer((place, client): &At) -> (Arc<dyn RedisClient>, GuardedWriter) {
    let client = locktopus::connect_client(&url_for(place, client))
        .await
        .unwrap();
    (Arc::clone(&client), GuardedWriter::new(client))
}

/// A fence that no server gave.
fn fence(lock: &str, token: u64) -> Fence {
    let target = LockTarget::new(LockName::new(lock).unwrap(), LockKind::Reentrant);
    Fence::new(&target, FencingToken::new(token).unwrap())
}

/// A bare connection to the server that has a key.
async fn raw(place: &Deployment, key: &str) -> Raw {
    Raw::to(place.primary_for(key).await.unwrap()).await
}

/// The hash beside a key without braces: lock, token, mark.
async fn stored(raw: &mut Raw, key: &str) -> [String; 3] {
    let fields = ["lock", "token", "holder"];
    let values = raw
        .say(
            &[
                &["HMGET", &format!("locktopus_fence:{{{key}}}")],
                &fields[..],
            ]
            .concat(),
        )
        .await;
    std::array::from_fn(|at| values.list()[at].text())
}

fn mark_of(fence: &Fence) -> String {
    fence
        .holder()
        .map_or_else(String::new, |mark: HolderMark| mark.to_string())
}

fn is_written(outcome: &GuardedOutcome) -> bool {
    *outcome == GuardedOutcome::Written
}
