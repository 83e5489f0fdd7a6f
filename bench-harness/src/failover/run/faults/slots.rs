//! Slots that move while their locks are in demand.

use locktopus_servers::topology::{Node, Resp, Role, slot_of};

use crate::failover::run::RunError;
use crate::failover::run::fault_context::FaultContext;

/// Keys that move with one command.
const AT_ONCE: &str = "50";

/// Moves the slot of a lock to another shard, key by key, as `redis-cli --cluster reshard` does.
pub(super) async fn move_one(context: &mut FaultContext<'_>) -> Result<(), RunError> {
    let (lock, from) = context.target().await?;
    let mut others = Vec::new();
    for node in context.place.nodes() {
        if node.addr() != from.addr() && node.role().await? == Role::Primary {
            others.push(node);
        }
    }
    let to = others[context.below(others.len())];
    let here = context.on(from).await;
    context.grant(&here).await?;
    context.fault(&format!("{} to {}", from.name(), to.name()))?;
    let slot = slot_of(&lock).to_string();
    let (from_id, to_id) = (id(from).await?, id(to).await?);
    to.command(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id])
        .await?;
    from.command(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id])
        .await?;
    move_keys(from, to, &slot).await?;
    // The new owner first: a slot without an owner would be refused everywhere.
    for node in [to, from] {
        node.command(&["CLUSTER", "SETSLOT", &slot, "NODE", &to_id])
            .await?;
    }
    context.note("moved");
    Ok(())
}

async fn move_keys(from: &Node, to: &Node, slot: &str) -> Result<(), RunError> {
    let port = to.addr().port().to_string();
    loop {
        let keys = from
            .command(&["CLUSTER", "GETKEYSINSLOT", slot, AT_ONCE])
            .await?;
        let keys: Vec<String> = keys.items().iter().map(Resp::text).collect();
        if keys.is_empty() {
            return Ok(());
        }
        let mut command = vec!["MIGRATE", "127.0.0.1", &port, "", "0", "2000", "KEYS"];
        command.extend(keys.iter().map(String::as_str));
        // If a key expired meanwhile, the answer is NOKEY, which is no error.
        from.command(&command).await?;
    }
}

async fn id(node: &Node) -> Result<String, RunError> {
    Ok(node.command(&["CLUSTER", "MYID"]).await?.text())
}
