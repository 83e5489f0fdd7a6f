//! What happens to connections and scripts.

use locktopus_testbed::topology::TopologyError;

use crate::failover::run::RunError;
use crate::failover::run::fault_context::FaultContext;

/// Sends a command to every server.
pub(super) async fn everywhere(
    context: &mut FaultContext<'_>,
    command: &[&str],
) -> Result<(), RunError> {
    let targets = context.targets();
    context.moment(&targets).await?;
    context.fault("all")?;
    for node in context.place.nodes() {
        node.command(command).await?;
    }
    Ok(())
}

/// Closes the connections for messages while the address leads to the replica, which takes subscriptions as a primary
/// does, and hears what is published on the primary. Connections for commands stay where they are.
pub(super) async fn mislead(context: &mut FaultContext<'_>) -> Result<(), RunError> {
    let (_, primary) = context.target().await?;
    let replica = context
        .place
        .nodes()
        .iter()
        .find(|node| node.addr() != primary.addr());
    let (Some(vip), Some(replica)) = (context.vip, replica) else {
        return Err(TopologyError::NotReached {
            what: "a replica behind an address".to_owned(),
            within: std::time::Duration::ZERO,
            last_seen: "no such servers".to_owned(),
        }
        .into());
    };
    let targets = context.targets();
    context.moment(&targets).await?;
    context.fault(replica.name())?;
    vip.point_at(replica.addr());
    let killed = primary.command(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
    // Time for clients to notice, and to subscribe where the address leads.
    tokio::time::sleep(context.cell.scenario.lasts).await;
    let there = vip.connections_to(replica.addr());
    vip.point_at(primary.addr());
    killed?;
    context.note(
        "points at the primary again",
        &format!("{there} connections on the replica"),
    );
    Ok(())
}
