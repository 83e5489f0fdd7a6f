//! How other programs on the same servers see our locks, byte for byte, and how their actions
//! affect ours.

use crate::common;
#[path = "wire/foreign.rs"]
mod foreign;
#[path = "wire/layout.rs"]
mod layout;
#[path = "wire/libraries.rs"]
mod libraries;
#[path = "wire/names.rs"]
mod names;
#[path = "wire/notifications.rs"]
mod notifications;
#[path = "wire/peers.rs"]
mod peers;
#[path = "wire/types.rs"]
mod types;

use std::sync::Arc;

use common::{CLIENTS, Cases, servers};
use locktopus_servers::topology::{Deployment, TopologyKind};

/// Starts every case for every client.
async fn everything_on(kind: TopologyKind) {
    let place = Arc::new(servers(kind).await);
    let mut cases = Cases::new();
    for client in CLIENTS {
        let name = |case: &str| format!("{kind} {client} {case}");
        let at = || (Arc::clone(&place), client);
        cases.add(name("layout of a lock"), layout::lock(at()));
        cases.add(name("layout of a mutex"), layout::mutex(at()));
        cases.add(name("taken from us"), foreign::thief(at()));
        cases.add(name("libraries"), libraries::all(at()));
        cases.add(name("bare DEL"), libraries::bare_delete(at()));
        cases.add(name("python-redis-lock"), notifications::python(at()));
        cases.add(name("Spring"), notifications::spring(at()));
        cases.add(name("kinds mixed"), types::mixed(at()));
        cases.add(name("foreign types"), types::foreign(at()));
        cases.add(name("odd names"), names::odd(at()));
    }
    cases.all_pass().await;
    // The last user's drop stops the servers.
    drop(place);
}

/// Servers and the client to use on them.
type At = (Arc<Deployment>, &'static str);

common::on_one_server_and_on_a_cluster!(everything_on);
