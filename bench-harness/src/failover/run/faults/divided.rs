//! Two primaries at once.

use std::time::Duration;

use locktopus_servers::topology::{Node, Role, TopologyError};
use tokio::time::{Instant, sleep};

use super::connections::until;
use super::primary::{LOOK, successor};
use crate::failover::run::RunError;
use crate::failover::run::fault_context::{FaultContext, RECOVERY};
use crate::failover::run::worker_pool::PROCESS;

/// A sentinel promotes a replica although the primary is well, as a sentinel does after a pause of
/// its own. The old primary stays one, because sentinels demote it only some ten seconds later.
/// Every second process loses its connections meanwhile and looks for the primary again, so clients
/// are on both sides unless the others follow.
pub(super) async fn two_primaries(context: &mut FaultContext<'_>) -> Result<(), RunError> {
    let (lock, primary) = context.target().await?;
    let here = context.on(primary).await;
    let sentinel = context.place.sentinels().first();
    let sentinel = sentinel.ok_or(RunError::NoSentinel)?;
    // Clients reconnect after an earlier turn.
    until("connections of every second process", async || {
        let were = of_second_half(primary).await?.len();
        Ok((were > 0, were))
    })
    .await?;
    context.grant(&here).await?;
    context.fault(primary.name())?;
    promote(context, sentinel).await?;
    let next = successor(context, &lock, primary).await?;
    disconnect_half(primary).await?;
    context.note("disconnected");
    // `successor` saw the other primary, so this one must still be a primary too.
    let role = primary.role().await?;
    if role != Role::Primary {
        let missing = TopologyError::NotReached {
            what: format!("{} as a primary beside {}", primary.name(), next.name()),
            within: Duration::ZERO,
            last_seen: format!("{role:?}"),
        };
        return Err(missing.into());
    }
    sleep(context.cell.scenario.lasts).await;
    // Sentinel does this in the end.
    let port = next.addr().port().to_string();
    primary.command(&["REPLICAOF", "127.0.0.1", &port]).await?;
    for kind in ["normal", "pubsub"] {
        primary.command(&["CLIENT", "KILL", "TYPE", kind]).await?;
    }
    context.note("told");
    Ok(())
}

/// Repeats the order, which is refused until the earlier failover is forgotten.
async fn promote(context: &FaultContext<'_>, sentinel: &Node) -> Result<(), RunError> {
    let order = ["SENTINEL", "FAILOVER", context.place.master_name()];
    let give_up = Instant::now() + RECOVERY;
    while let Err(error) = sentinel.command(&order).await {
        if Instant::now() >= give_up {
            return Err(error.into());
        }
        sleep(LOOK).await;
    }
    Ok(())
}

/// Closes the connections of every second process.
async fn disconnect_half(server: &Node) -> Result<(), TopologyError> {
    for id in of_second_half(server).await? {
        // The connection may have closed already.
        let _ = server.command(&["CLIENT", "KILL", "ID", &id]).await;
    }
    Ok(())
}

/// The ids of the connections of processes with an odd number.
async fn of_second_half(server: &Node) -> Result<Vec<String>, TopologyError> {
    let all = server.command(&["CLIENT", "LIST"]).await?.text();
    let ids = all.lines().filter_map(odd);
    Ok(ids.map(ToOwned::to_owned).collect())
}

/// The id of the connection in this line, if it belongs to a process with an odd number.
fn odd(client: &str) -> Option<&str> {
    let field = |name| {
        let mut fields = client.split(' ');
        fields.find_map(|field| field.strip_prefix(name))
    };
    let process: usize = field("name=")?.strip_prefix(PROCESS)?.parse().ok()?;
    (process % 2 == 1).then_some(field("id=")?)
}

#[cfg(test)]
mod tests {
    use super::odd;

    #[test]
    fn every_second_process_is_chosen() {
        let client =
            |name: &str| format!("id=7 addr=127.0.0.1:5 laddr=127.0.0.1:6 fd=8 name={name} age=1");
        assert_eq!(odd(&client("process-3")), Some("7"));
        for other in ["process-2", "sentinel-1-cmd", "", "process-"] {
            assert_eq!(odd(&client(other)), None, "{other}");
        }
    }
}
