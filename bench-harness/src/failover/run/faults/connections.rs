//! What happens to connections and scripts.

use locktopus_testbed::topology::TopologyError;

use super::super::RunError;
use super::super::stage::Stage;

/// Sends a command to every server.
pub(super) async fn everywhere(stage: &mut Stage<'_>, command: &[&str]) -> Result<(), RunError> {
    let targets = stage.targets();
    stage.moment(&targets).await?;
    stage.fault("all")?;
    for node in stage.place.nodes() {
        node.command(command).await?;
    }
    Ok(())
}

/// Closes the connections for messages while the address leads to the replica, which takes subscriptions as a primary
/// does, and hears what is published on the primary. Connections for commands stay where they are.
pub(super) async fn mislead(stage: &mut Stage<'_>) -> Result<(), RunError> {
    let (_, primary) = stage.target().await?;
    let replica = stage
        .place
        .nodes()
        .iter()
        .find(|node| node.addr() != primary.addr());
    let (Some(vip), Some(replica)) = (stage.vip, replica) else {
        return Err(TopologyError::NotReached {
            what: "a replica behind an address".to_owned(),
            within: std::time::Duration::ZERO,
            last_seen: "no such servers".to_owned(),
        }
        .into());
    };
    let targets = stage.targets();
    stage.moment(&targets).await?;
    stage.fault(replica.name())?;
    vip.point_at(replica.addr());
    let killed = primary.command(&["CLIENT", "KILL", "TYPE", "pubsub"]).await;
    // Time for clients to notice, and to subscribe where the address leads.
    tokio::time::sleep(stage.cell.scenario.lasts).await;
    let there = vip.connections_to(replica.addr());
    vip.point_at(primary.addr());
    killed?;
    stage.note(
        "points at the primary again",
        &format!("{there} connections on the replica"),
    );
    Ok(())
}
