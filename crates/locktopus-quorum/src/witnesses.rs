//! For how long a server has been up, by what the other nodes were told.
//!
//! A server computes its uptime from its clock. If the clock was wrong when the server started and was set right later,
//! the uptime is too long, and the node would vote before the leases that it forgot are over. So each client notes on
//! the other nodes which server it saw behind a node. The age of a server counts from the first such note too.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use locktopus_core::{BackendError, NodeIdentity, NodeProbe, Sighting};
use tokio::time::{Instant, timeout_at};

/// The probes of all nodes that have one, by the nodes' indices.
pub(super) type Witnesses = Arc<[(usize, Arc<dyn NodeProbe>)]>;

/// The age of the server behind the node with this index and label, and notes it where it is not known. A node that hangs is
/// waited for until the first of the limits, and the others have until the second one to note it.
pub(super) async fn age(
    witnesses: &Witnesses,
    (index, label): (usize, &str),
    identity: &NodeIdentity,
    [answers, deadline]: [Instant; 2],
) -> Duration {
    let others = witnesses.iter().filter(|(other, _)| *other != index);
    let others: Vec<_> = others.map(|(_, probe)| probe).collect();
    let asked = others.iter().map(|probe| recall(probe, label, answers));
    let told: Vec<_> = join_all(asked).await;
    let sightings: Vec<_> = told.iter().flatten().flatten().collect();
    let same = |sighting: &&Sighting| sighting.run_id == identity.run_id;
    let since = sightings.iter().copied().filter(same).map(|seen| seen.age);
    let age = match since.min() {
        // Its clock was set back since it was started, so that it counts less than nothing.
        Some(since) if identity.uptime.is_zero() && since < Duration::MAX => since,
        Some(since) => since.min(identity.uptime),
        // There was another server before, and nobody has seen this one.
        None if !sightings.is_empty() => Duration::ZERO,
        // Nobody has ever seen a server behind this node.
        None => identity.uptime,
    };
    let sighting = Sighting::new(identity.run_id.as_str(), age);
    // Also a note from the future, which would not tell for how long either next time.
    let is_good = |told: &Sighting| same(&told) && told.age < Duration::MAX;
    let uninformed = others.iter().zip(&told).filter(|(_, told)| match told {
        Ok(told) => !told.as_ref().is_some_and(is_good),
        Err(_) => false,
    });
    let notes =
        uninformed.map(|(probe, _)| timeout_at(deadline, probe.note(label, &sighting, deadline)));
    for noted in join_all(notes).await {
        if let Ok(Err(error)) = noted {
            tracing::debug!(node = label, %error, "a node was not told which server this is");
        }
    }
    age
}

/// Notes on this node which server is behind another one, if it knows of none. What this program knows may be older than what
/// the node was told of another server there, and that proves a restart anyway.
pub(super) async fn remind(
    probe: &Arc<dyn NodeProbe>,
    label: &str,
    sighting: &Sighting,
    deadline: Instant,
) {
    let told = recall(probe, label, deadline).await;
    if told.is_ok_and(|told| told.is_none()) {
        // Whoever comes back again is told again.
        let _ = timeout_at(deadline, probe.note(label, sighting, deadline)).await;
    }
}

async fn recall(
    probe: &Arc<dyn NodeProbe>,
    label: &str,
    deadline: Instant,
) -> Result<Option<Sighting>, Option<BackendError>> {
    let told = timeout_at(deadline, probe.recall(label, deadline)).await;
    told.map_err(|_| None)?.map_err(Some)
}
