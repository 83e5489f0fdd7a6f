//! Faults of servers that have no successor.

use std::time::Duration;

use locktopus_servers::topology::{Node, TopologyError};

use crate::failover::run::RunError;
use crate::failover::run::fault_context::FaultContext;
use crate::failover::run::load;

/// SIGKILLs `count` servers in turn and restarts them. They lose their data unless they keep it on
/// disk.
pub(super) async fn restart(context: &mut FaultContext<'_>, count: usize) -> Result<(), RunError> {
    let nodes = context.place.nodes();
    let first = context.below(nodes.len());
    let chosen: Vec<_> = (0..count)
        .map(|at| &nodes[(first + at) % nodes.len()])
        .collect();
    let targets = context.targets();
    context.grant(&targets).await?;
    let names: Vec<_> = chosen.iter().map(|node| node.name()).collect();
    context.fault(&names.join(" "))?;
    for node in &chosen {
        node.crash().await?;
    }
    for node in &chosen {
        node.start().await?;
    }
    context.note("back");
    Ok(())
}

/// Requests that arrive meanwhile run when the server continues, and their answers come too late.
pub(super) async fn freeze(context: &mut FaultContext<'_>) -> Result<(), RunError> {
    let (_, node) = context.target().await?;
    let targets = context.targets();
    context.grant(&targets).await?;
    context.fault(node.name())?;
    node.freeze().await?;
    tokio::time::sleep(context.cell.scenario.lasts).await;
    node.thaw().await?;
    context.note("thawed");
    Ok(())
}

/// Freezes a replica: waits for it are blocked, and it lags behind when it continues.
pub(super) async fn freeze_replica(context: &mut FaultContext<'_>) -> Result<(), RunError> {
    let (_, primary) = context.target().await?;
    let replica = super::primary::replica_of(context, primary).await?;
    let targets = context.targets();
    context.grant(&targets).await?;
    context.fault(replica.name())?;
    replica.freeze().await?;
    tokio::time::sleep(context.cell.scenario.lasts).await;
    replica.thaw().await?;
    context.note("thawed");
    Ok(())
}

/// Moves the clock ahead, and back at the next turn, as an administrator does, or a time server
/// after a long absence.
pub(super) async fn step_clock(context: &mut FaultContext<'_>) -> Result<(), RunError> {
    let (_, node) = context.target().await?;
    let is_right = context.done.is_multiple_of(2);
    let ahead = if is_right {
        context.cell.scenario.lasts
    } else {
        Duration::ZERO
    };
    let targets = context.targets();
    context.grant(&targets).await?;
    context.fault(node.name())?;
    node.set_clock_ahead(ahead)?;
    context.note(&format!("{ahead:?} ahead"));
    Ok(())
}

/// Values written at each turn: more than the server may keep.
const VALUES: u32 = 400;
const VALUE: usize = 64 * 1024;
/// The values' time to live in ms: they pile up beyond the limit even if each takes 20 ms to write.
const STAYS_MS: &str = "3000";

/// Other clients fill the memory of a server that evicts.
pub(super) async fn evict(context: &mut FaultContext<'_>) -> Result<(), RunError> {
    let (lock, node) = context.target().await?;
    let targets = context.targets();
    context.grant(&targets).await?;
    context.fault(node.name())?;
    let before = evicted(node).await?;
    let value = "x".repeat(VALUE);
    for number in 0..VALUES {
        let key = format!("{{{lock}}}:{}:{number}", load::NAME);
        node.command(&["SET", &key, &value, "PX", STAYS_MS]).await?;
    }
    // A server that was restarted meanwhile counts from zero.
    let keys = evicted(node).await?.saturating_sub(before);
    context.note("evicted");
    if keys == 0 {
        // A server that does not evict has room for everything, and no lock was in danger.
        return Err(TopologyError::NotReached {
            what: format!("{} evicts keys", node.name()),
            within: Duration::ZERO,
            last_seen: "it evicted none".to_owned(),
        }
        .into());
    }
    Ok(())
}

/// Keys that a server has evicted so far.
async fn evicted(node: &Node) -> Result<u64, TopologyError> {
    let text = node.info("stats", "evicted_keys").await?;
    let number = text.as_deref().map(str::parse);
    number
        .and_then(Result::ok)
        .ok_or_else(|| TopologyError::NotReached {
            what: format!("{} says how many keys it evicted", node.name()),
            within: Duration::ZERO,
            last_seen: format!("{text:?}"),
        })
}
