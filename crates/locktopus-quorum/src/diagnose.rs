//! Threats to the locks of a quorum: those of each node, and nodes that depend on each other.

use std::sync::Arc;

use tokio::time::Instant;

use super::members::Members;
use super::node::Node;
use locktopus_contract::{BackendError, Diagnosis, Finding, Primary, Severity};

/// The limit of what the nodes know about each other.
const UPTIME_NOTE: &str = "a restarted node votes again after the longest lease, by its own clock and by when the other nodes \
                      were first told of it; if all nodes lose their data while their clocks are wrong, nobody can tell: \
                      set the clocks (NTP) before the servers start";

/// The check that finds silent nodes.
const REACHABLE: &str = "reachable";

/// The findings of each node, and those about all of them together.
pub(super) async fn diagnose(
    members: &Arc<Members>,
    deadline: Instant,
) -> Result<Diagnosis, BackendError> {
    members.ready()?;
    let looked = members
        .nodes
        .iter()
        .map(|node| diagnose_node(node, deadline));
    let looked = futures_util::future::join_all(looked).await;
    let mut diagnosis = Diagnosis::default();
    let mut places: Vec<(&str, Vec<String>)> = Vec::new();
    let mut granting = members.nodes.len();
    for (node, seen) in members.nodes.iter().zip(looked) {
        let Diagnosis {
            nodes,
            findings,
            primaries,
        } = seen;
        let fails = |finding: &Finding| matches!(finding.check, "probe" | REACHABLE);
        granting -= usize::from(findings.iter().any(fails));
        let named = primaries.into_iter().map(|mut primary| {
            // A node is one server. Its label identifies it even while it does not answer.
            primary.address = node.label.to_string();
            primary
        });
        diagnosis.primaries.extend(named);
        let named = nodes.iter().map(|text| format!("{}: {text}", node.label));
        diagnosis.nodes.extend(named);
        // After a restart, a node with a probe votes only once everything that it forgot has
        // expired.
        let forgets = |finding: &Finding| finding.check == "persistence" && node.probe.is_some();
        let named = findings.into_iter().filter(|finding| !forgets(finding));
        let named = named.map(|finding| {
            let message = format!("{}: {}", node.label, finding.message);
            Finding::new(finding.severity, finding.check, message)
        });
        diagnosis.findings.extend(named);
        places.push((&node.label, nodes));
    }
    if granting < members.majority() {
        let message = format!(
            "{granting} of {} nodes can grant a lock, and {} must: no lock can be taken",
            members.nodes.len(),
            members.majority()
        );
        let found = Finding::new(Severity::Warning, "majority", message);
        diagnosis.findings.push(found);
    }
    let mut dependent = same_servers(&members.nodes);
    if members.nodes.iter().any(|node| node.probe.is_some()) {
        diagnosis
            .findings
            .push(Finding::new(Severity::Note, "uptime", UPTIME_NOTE));
    }
    // All nodes in this process look the same.
    let known = |(_, nodes): &&(&str, Vec<String>)| nodes.iter().any(|n| n.contains(':'));
    let places: Vec<_> = places.iter().filter(known).collect();
    for (at, (label, nodes)) in places.iter().enumerate() {
        for (other, _) in places[..at].iter().filter(|(_, others)| others == nodes) {
            if !dependent.iter().any(|(pair, _)| pair == &[*label, *other]) {
                dependent.push(([label, other], "have the same address"));
            }
        }
    }
    let dependent = dependent.into_iter().map(not_independent);
    diagnosis.findings.extend(dependent);
    diagnosis
        .findings
        .sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    Ok(diagnosis)
}

async fn diagnose_node(node: &Arc<Node>, deadline: Instant) -> Diagnosis {
    let mut diagnosis = match node.call(deadline, node.backend.diagnose(deadline)).await {
        Ok(diagnosis) => diagnosis,
        // So it does not tell its identity either.
        Err(abstention) => {
            return Diagnosis {
                nodes: vec!["not reached".to_owned()],
                findings: vec![Finding::new(
                    Severity::Warning,
                    REACHABLE,
                    abstention.to_string(),
                )],
                primaries: vec![Primary::silent(&*node.label)],
            };
        }
    };
    let finding = match &node.probe {
        None => Some((
            Severity::Note,
            "no probe: this node is assumed never to lose a lock, also not by a restart".to_owned(),
        )),
        Some(probe) => match node.identify(deadline).await {
            // The pair of nodes is reported as a danger instead.
            Err(abstention) if abstention.is_twin() => None,
            Err(abstention) => Some((Severity::Warning, abstention.to_string())),
            Ok(()) => {
                let told = probe.sighting(&node.label, deadline).await;
                told.err().map(|error| {
                    let message = format!(
                        "it cannot say what it was told about the other nodes, so their clocks alone say for how long \
                         they have been up ({error}); grant ~locktopus_history* with +hget and +hset"
                    );
                    (Severity::Warning, message)
                })
            }
        },
    };
    diagnosis
        .findings
        .extend(finding.map(|(severity, message)| Finding::new(severity, "rejoin", message)));
    diagnosis
}

/// Pairs of nodes with the same server, or with servers that are copies of each other, and how.
fn same_servers(nodes: &[Arc<Node>]) -> Vec<([&str; 2], &'static str)> {
    let mut pairs = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        for other in &nodes[..at] {
            let (Some(a), Some(b)) = (node.identity(), other.identity()) else {
                continue;
            };
            let how = if a.run_id == b.run_id {
                "are the same server"
            } else if a.replication_id.is_some() && a.replication_id == b.replication_id {
                "are replicas of each other"
            } else {
                continue;
            };
            pairs.push(([&*node.label, &*other.label], how));
        }
    }
    pairs
}

fn not_independent(([a, b], how): ([&str; 2], &str)) -> Finding {
    let message =
        format!("{b} and {a} {how}; a quorum is safe only over servers that fail independently");
    Finding::new(Severity::Danger, "independent", message)
}
