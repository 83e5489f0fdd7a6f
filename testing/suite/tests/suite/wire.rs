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

use common::{At, Cases, servers};
use locktopus_servers::topology::TopologyKind;

/// Starts every case for every client.
async fn everything_on(kind: TopologyKind) {
    let place = Arc::new(servers(kind).await);
    let mut cases = Cases::new();
    cases.each_on(&place, "layout of a lock", layout::lock);
    cases.each_on(&place, "layout of a mutex", layout::mutex);
    cases.each_on(&place, "taken from us", foreign::thief);
    cases.each_on(&place, "libraries", libraries::all);
    cases.each_on(&place, "bare DEL", libraries::bare_delete);
    cases.each_on(&place, "python-redis-lock", notifications::python);
    cases.each_on(&place, "Spring", notifications::spring);
    cases.each_on(&place, "kinds mixed", types::mixed);
    cases.each_on(&place, "foreign types", types::foreign);
    cases.each_on(&place, "odd names", names::odd);
    cases.all_pass().await;
    // The last user's drop stops the servers.
    drop(place);
}

common::on_one_server_and_on_a_cluster!(everything_on);
