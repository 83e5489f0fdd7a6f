//! Moves a slot to another primary, with the steps of every cluster tool.

use locktopus_servers::topology::{Deployment, Node, Role, slot_of};

use crate::common::LONG;

/// Moves the slot of this name, with its keys, and returns its new node.
pub(crate) async fn slot_with<'a>(place: &'a Deployment, name: &str) -> &'a Node {
    let from = place.primary_for(name).await.unwrap();
    let to = other_primary(place, from).await;
    let slot = slot_of(name).to_string();
    let (from_id, to_id) = (id(from).await, id(to).await);
    let set = |state, id| ["CLUSTER", "SETSLOT", &slot, state, id];
    to.command(&set("IMPORTING", &from_id)).await.unwrap();
    from.command(&set("MIGRATING", &to_id)).await.unwrap();
    let port = to.addr().port().to_string();
    let listed = ["CLUSTER", "GETKEYSINSLOT", &slot, "100"];
    for key in from.command(&listed).await.unwrap().items() {
        let words = ["MIGRATE", "127.0.0.1", &port, &key.text(), "0", "20000"];
        from.command_within(LONG, &words).await.unwrap();
    }
    let assign = ["CLUSTER", "SETSLOT", &slot, "NODE", &to_id];
    to.command(&assign).await.unwrap();
    from.command(&assign).await.unwrap();
    to
}

/// The primaries may have changed, on a machine that stopped for longer than the node timeout.
async fn other_primary<'a>(place: &'a Deployment, from: &Node) -> &'a Node {
    for node in place.nodes() {
        if node.name() != from.name() && node.role().await.unwrap() == Role::Primary {
            return node;
        }
    }
    panic!("{} is the only primary", from.name())
}

async fn id(node: &Node) -> String {
    node.command(&["CLUSTER", "MYID"]).await.unwrap().text()
}
