//! How long a server has been up, according to notes on the other nodes.
//!
//! A server computes its uptime from its clock. If the clock was wrong at the start and was
//! corrected later, the uptime is too long, and the node would vote before the leases that it
//! forgot are over. So each client notes on the other nodes which server it saw behind a node. A
//! server's age also counts from the first such note.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use locktopus_contract::{BackendError, NodeIdentity, NodeProbe, Sighting};
use tokio::time::{Instant, timeout_at};

/// The probes of all nodes that have one, with the nodes' indices.
pub(super) type Witnesses = Arc<[(usize, Arc<dyn NodeProbe>)]>;

/// Suffix of the run id in a note if the client had no answer from a node that might know more.
const UNVOUCHED_SUFFIX: &str = "?";

/// How long a server has been up, at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Age {
    pub(super) least: Duration,
    /// Every other node has answered. Otherwise a silent one may know of a restart.
    pub(super) vouched: bool,
}

/// The note about a server with this run id and age.
pub(super) fn note_of(run_id: &str, age: Age) -> Sighting {
    let mark = if age.vouched { "" } else { UNVOUCHED_SUFFIX };
    Sighting::new(format!("{run_id}{mark}"), age.least)
}

/// Asks the other nodes for the age of the server behind the node with this index and label, and
/// leaves a note where it is unknown. They have until `answers`. If none of them knows, the silent
/// ones get `again` for a second answer. A server seen for the longest lease needs no other proof.
pub(super) async fn age(
    witnesses: &Witnesses,
    (index, label): (usize, &str),
    identity: &NodeIdentity,
    (answers, again, max_lease): (Instant, Duration, Duration),
) -> Age {
    let others = witnesses.iter().filter(|(other, _)| *other != index);
    let others: Vec<_> = others.map(|(_, probe)| probe).collect();
    let asked = others
        .iter()
        .map(|probe| ask_sighting(probe, label, answers));
    let mut told: Vec<_> = join_all(asked).await;
    let mut age = judge(&told, identity, max_lease);
    if !age.vouched {
        let deadline = Instant::now() + again;
        let silent = others.iter().zip(&mut told);
        let silent = silent.filter(|(_, told)| is_silent(told));
        let asked =
            silent.map(async |(probe, told)| *told = ask_sighting(probe, label, deadline).await);
        join_all(asked).await;
        age = judge(&told, identity, max_lease);
    }
    let sighting = note_of(&identity.run_id, age);
    // Replace a note from the future too, because it could not tell the age next time either.
    let is_good = |told: &Sighting| told.run_id == sighting.run_id && told.age < Duration::MAX;
    let uninformed = others.iter().zip(&told).filter(|(_, told)| match told {
        Ok(told) => !told.as_ref().is_some_and(is_good),
        Err(_) => false,
    });
    let deadline = Instant::now() + again / 2;
    let notes = uninformed
        .map(|(probe, _)| timeout_at(deadline, probe.note_sighting(label, &sighting, deadline)));
    for noted in join_all(notes).await {
        if let Ok(Err(error)) = noted {
            tracing::debug!(node = label, %error, "a node was not told which server this is");
        }
    }
    age
}

/// The age that the answers of the other nodes prove.
fn judge(told: &[SightingAnswer], identity: &NodeIdentity, max_lease: Duration) -> Age {
    let run_id = &*identity.run_id;
    let sightings = || told.iter().flatten().flatten();
    let is_unvouched = |told: &Sighting| told.run_id.strip_suffix(UNVOUCHED_SUFFIX) == Some(run_id);
    let since = |is_meant: &dyn Fn(&Sighting) -> bool| {
        let since = sightings()
            .filter(|told| is_meant(told))
            .map(|told| told.age);
        since.min().map(|since| match since {
            // Its clock was set back after its start, so its uptime would be negative.
            _ if identity.uptime.is_zero() && since < Duration::MAX => since,
            _ => since.min(identity.uptime),
        })
    };
    let vouched = |least| Age {
        least,
        vouched: true,
    };
    if let Some(since) = since(&|told| told.run_id == run_id) {
        return vouched(since);
    }
    if !sightings().all(is_unvouched) {
        // The nodes saw another server earlier, and not this one.
        return vouched(Duration::ZERO);
    }
    if told.iter().any(is_silent) {
        // A silent node may have seen another one. Clients without its answer left marked notes.
        let since = since(&|told| is_unvouched(told) && told.age < Duration::MAX);
        let least = since.unwrap_or_default();
        return Age {
            least,
            vouched: least >= max_lease,
        };
    }
    // No node has ever seen a server behind this one.
    vouched(identity.uptime)
}

/// Leaves a note on this node about the server behind another one, if it has no note. If the node
/// has a note about another server there, this program's knowledge may be older, and that note
/// proves a restart anyway.
pub(super) async fn remind(
    probe: &Arc<dyn NodeProbe>,
    label: &str,
    sighting: &Sighting,
    deadline: Instant,
) {
    let told = ask_sighting(probe, label, deadline).await;
    if told.is_ok_and(|told| told.is_none()) {
        // If it goes away and returns, it gets another note.
        let _ = timeout_at(deadline, probe.note_sighting(label, sighting, deadline)).await;
    }
}

/// A node's note about another one. The error is `None` if no answer came in time.
type SightingAnswer = Result<Option<Sighting>, Option<BackendError>>;

/// Whether a node gave no answer. One that refuses the question has answered: it keeps no notes.
fn is_silent(told: &SightingAnswer) -> bool {
    told.as_ref()
        .is_err_and(|error| error.as_ref().is_none_or(BackendError::is_transient))
}

async fn ask_sighting(
    probe: &Arc<dyn NodeProbe>,
    label: &str,
    deadline: Instant,
) -> SightingAnswer {
    let told = timeout_at(deadline, probe.sighting(label, deadline)).await;
    told.map_err(|_| None)?.map_err(Some)
}
