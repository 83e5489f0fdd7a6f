//! Faults of primaries that have replicas.

use std::time::Duration;

use locktopus_servers::topology::{Isolation, Node, Role, TopologyError};
use tokio::time::Instant;

use super::connections::until;
use crate::failover::plan::Place;
use crate::failover::run::RunError;
use crate::failover::run::fault_context::{FaultContext, RECOVERY};

/// Polling interval while waiting for a new primary.
pub(super) const LOOK: Duration = Duration::from_millis(25);
/// How long a planned failover may take before it is ordered again.
const CHANGED_WITHIN: Duration = Duration::from_secs(5);
/// How long to wait for the next grant if there may be none, because the replicas are cut off.
const CUT_FOR: Duration = Duration::from_secs(5);
/// Log lines of servers that may not take over, or find no replica that may.
const REFUSALS: [&str; 2] = ["unable to failover", "-failover-abort-no-good-slave"];

/// SIGKILL; the old primary comes back as a replica of the new one.
pub(super) async fn kill(context: &mut FaultContext<'_>) -> Result<(), RunError> {
    let (lock, primary) = context.target().await?;
    let here = context.on(primary).await;
    let load = context.load(primary, &lock);
    if context.cut_off(primary).await? {
        // A lock that waits for its replicas may not be granted at all meanwhile.
        let _ = tokio::time::timeout(cut_for(context), context.grant(&here)).await;
    } else {
        context.grant(&here).await?;
    }
    context.fault(primary.name())?;
    primary.crash().await?;
    drop(load);
    let next = successor(context, &lock, primary).await?;
    return_as_replica(context, primary, next).await
}

/// How long replicas may be cut off and still take over. Sentinels reject a replica that lost the
/// primary more than ten times `down-after-milliseconds` before they found it down. In clusters
/// such scenarios turn that rule off.
fn cut_for(context: &FaultContext<'_>) -> Duration {
    match context.cell.place {
        Place::Sentinel => CUT_FOR.min(context.cell.scenario.servers.down_after * 5),
        _ => CUT_FOR,
    }
}

/// As [`kill`], but the replica that kept up is frozen until the lagging one has taken over.
pub(super) async fn promote_laggard(context: &mut FaultContext<'_>) -> Result<(), RunError> {
    let (lock, primary) = context.target().await?;
    let here = context.on(primary).await;
    let mut replicas: Vec<&Node> = context
        .place
        .nodes()
        .iter()
        .filter(|node| node.addr() != primary.addr())
        .collect();
    if context.below(2) == 1 {
        replicas.reverse();
    }
    let [laggard, others @ ..] = replicas.as_slice() else {
        return Ok(());
    };
    laggard.freeze().await?;
    context.note("lags");
    let load = context.load(primary, &lock);
    // A lock that waits for all replicas is not granted meanwhile.
    let _ = tokio::time::timeout(CUT_FOR, context.grant(&here)).await;
    // An error must not leave a server frozen.
    let killed = match context.fault(primary.name()) {
        Ok(()) => primary.crash().await.map_err(RunError::from),
        Err(error) => Err(error),
    };
    drop(load);
    for other in others {
        other.freeze().await?;
    }
    laggard.thaw().await?;
    let next = match killed {
        Ok(()) => successor(context, &lock, primary).await,
        Err(error) => Err(error),
    };
    for other in others {
        other.thaw().await?;
    }
    return_as_replica(context, primary, next?).await
}

/// SIGSTOP until a replica has taken over, and for a while longer; then the old primary continues
/// and still believes that it is in charge.
pub(super) async fn freeze(context: &mut FaultContext<'_>) -> Result<(), RunError> {
    let (lock, primary) = context.target().await?;
    let here = context.on(primary).await;
    context.grant(&here).await?;
    context.fault(primary.name())?;
    primary.freeze().await?;
    let next = successor(context, &lock, primary).await;
    tokio::time::sleep(context.cell.scenario.lasts).await;
    primary.thaw().await?;
    context.note("thawed");
    next?;
    until_one_leads(context).await
}

/// Cut off from the other servers until a replica has taken over, and for a while longer. Clients
/// reach both sides.
pub(super) async fn isolate_from_peers(context: &mut FaultContext<'_>) -> Result<(), RunError> {
    let (lock, primary) = context.target().await?;
    let here = context.on(primary).await;
    context.grant(&here).await?;
    context.fault(primary.name())?;
    primary.isolate(Isolation::Peers).await?;
    let next = successor(context, &lock, primary).await;
    tokio::time::sleep(context.cell.scenario.lasts).await;
    primary.heal().await?;
    context.note("healed");
    next?;
    until_one_leads(context).await
}

/// Cut off from clients for a while; the other servers notice nothing.
pub(super) async fn isolate_from_clients(context: &mut FaultContext<'_>) -> Result<(), RunError> {
    let (_, primary) = context.target().await?;
    let here = context.on(primary).await;
    context.grant(&here).await?;
    context.fault(primary.name())?;
    primary.isolate(Isolation::Clients).await?;
    tokio::time::sleep(context.cell.scenario.lasts).await;
    primary.heal().await?;
    context.note("healed");
    Ok(())
}

/// A planned failover, as before maintenance.
pub(super) async fn hand_over(context: &mut FaultContext<'_>) -> Result<(), RunError> {
    let (lock, primary) = context.target().await?;
    let here = context.on(primary).await;
    let asked: (&Node, &[&str]) = if context.cell.place == Place::Sentinel {
        let sentinel = context.place.sentinels().first();
        let sentinel = sentinel.ok_or(RunError::NoSentinel)?;
        (sentinel, &["SENTINEL", "FAILOVER", "mymaster"])
    } else {
        (
            replica_of(context, primary).await?,
            &["CLUSTER", "FAILOVER"],
        )
    };
    let load = context.load(primary, &lock);
    context.grant(&here).await?;
    context.fault(primary.name())?;
    let (node, command) = asked;
    let give_up = Instant::now() + RECOVERY;
    let mut answer = node.command(command).await;
    drop(load);
    loop {
        let changed = answer.is_ok() && is_changed(context, &lock, primary, CHANGED_WITHIN).await?;
        if changed {
            return Ok(());
        }
        if Instant::now() >= give_up {
            return Err(RunError::NoSuccessor(RECOVERY));
        }
        // Again: it is refused until the earlier failover is forgotten, or was too slow.
        tokio::time::sleep(LOOK).await;
        answer = node.command(command).await;
    }
}

/// Waits until a node other than `old` is in charge of `lock`. Writes may have to wait until the
/// old one is back as its replica. If no node takes over, the error includes what the servers
/// logged about it.
pub(super) async fn successor<'a>(
    context: &mut FaultContext<'a>,
    lock: &str,
    old: &Node,
) -> Result<&'a Node, RunError> {
    let source = match anybody_but(context, lock, old).await {
        Ok(next) => return Ok(next),
        Err(error) => Box::new(error),
    };
    let mut said = Vec::new();
    for node in context
        .place
        .nodes()
        .iter()
        .chain(context.place.sentinels())
    {
        for words in REFUSALS {
            if let Some(line) = node.last_line_with(words).await {
                said.push(format!("{}: {line}", node.name()));
            }
        }
    }
    if said.is_empty() {
        said.push("none".to_owned());
    }
    let said = said.join("; ");
    Err(RunError::Refused { source, said })
}

async fn anybody_but<'a>(
    context: &mut FaultContext<'a>,
    lock: &str,
    old: &Node,
) -> Result<&'a Node, RunError> {
    let end = Instant::now() + RECOVERY;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let next = context.place.wait_in_charge(lock, left).await?;
        if next.addr() != old.addr() {
            context.note("promoted");
            return Ok(next);
        }
        if left.is_zero() {
            return Err(RunError::NoSuccessor(RECOVERY));
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Whether a node other than `old` takes charge of `lock` in time.
async fn is_changed(
    context: &mut FaultContext<'_>,
    lock: &str,
    old: &Node,
    within: Duration,
) -> Result<bool, RunError> {
    match tokio::time::timeout(within, successor(context, lock, old)).await {
        Ok(next) => next.map(|_| true),
        Err(_) => Ok(false),
    }
}

/// Waits until sentinels have settled on one primary. The old primary believes to be in charge for
/// ten seconds more, unless the sentinels returned to it and are about to demote the other one.
/// Until then they may promote either again, with the data that it had.
pub(super) async fn until_one_leads(context: &FaultContext<'_>) -> Result<(), RunError> {
    if context.cell.place != Place::Sentinel {
        return Ok(());
    }
    until("one primary and its replicas", async || {
        let mut roles = Vec::new();
        for node in context.place.nodes() {
            // Connections break when a server becomes a replica.
            roles.push(node.role().await.map_err(|error| error.to_string()));
        }
        let are =
            |what: fn(&Role) -> bool| roles.iter().flatten().filter(|role| what(role)).count();
        let (lead, follow) = (
            are(|role| matches!(role, Role::Primary)),
            are(|role| matches!(role, Role::Replica { .. })),
        );
        Ok((lead == 1 && follow == roles.len() - 1, roles))
    })
    .await?;
    Ok(())
}

pub(super) async fn return_as_replica(
    context: &mut FaultContext<'_>,
    old: &Node,
    next: &Node,
) -> Result<(), RunError> {
    old.start().await?;
    if context.cell.place == Place::Sentinel {
        // Sentinel would do it ten seconds later; until then this would be an empty primary.
        let port = next.addr().port().to_string();
        old.command(&["REPLICAOF", "127.0.0.1", &port]).await?;
    }
    context.note("back");
    Ok(())
}

pub(super) async fn replica_of<'a>(
    context: &FaultContext<'a>,
    primary: &Node,
) -> Result<&'a Node, RunError> {
    for node in context.place.nodes() {
        if node.copies_port().await? == Some(primary.addr().port()) {
            return Ok(node);
        }
    }
    Err(TopologyError::NotReached {
        what: format!("a replica of {}", primary.name()),
        within: Duration::ZERO,
        last_seen: "no node names it".to_owned(),
    }
    .into())
}
