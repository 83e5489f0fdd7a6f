//! The strict check that a deployment is complete.
//!
//! "Every server answers" is far too early: gossip and links settle later, and a scenario that
//! starts before that sees failures that it did not cause.

use crate::topology::error::TopologyError;
use crate::topology::kind::TopologyKind;
use crate::topology::node::{Node, Role};
use crate::topology::plan::MASTER_NAME;
use crate::topology::poll;
use crate::topology::slot::SLOTS;

type Seen<T = ()> = Result<T, String>;

fn seen(error: TopologyError) -> String {
    error.to_string()
}

/// Waits until every part of the topology agrees that it is complete.
pub(crate) async fn complete(
    kind: TopologyKind,
    nodes: &[Node],
    sentinels: &[Node],
) -> Result<(), TopologyError> {
    poll::until(
        || format!("ready {kind} topology"),
        poll::START,
        async || match kind {
            TopologyKind::Standalone | TopologyKind::Quorum { .. } | TopologyKind::Tls => {
                all_primaries(nodes).await
            }
            TopologyKind::Sentinel { .. } => {
                let primary = one_primary(nodes).await?;
                for node in sentinels {
                    of_primary(node, primary).await?;
                    sentinel(node, nodes.len() - 1, sentinels.len() - 1).await?;
                }
                Ok(())
            }
            TopologyKind::Cluster { primaries, .. } => {
                for node in nodes {
                    cluster_node(node, nodes.len(), usize::from(primaries)).await?;
                }
                Ok(())
            }
        },
    )
    .await
}

/// Waits until exactly one node accepts writes and all others copy it.
pub(crate) async fn replicas_linked(nodes: &[Node]) -> Result<(), TopologyError> {
    poll::until(
        || "links of all replicas".to_owned(),
        poll::START,
        async || one_primary(nodes).await.map(drop),
    )
    .await
}

async fn all_primaries(nodes: &[Node]) -> Seen {
    for node in nodes {
        let role = node.role_seen().await.map_err(seen)?;
        if role != Role::Primary {
            return Err(format!("{} is {role:?}", node.name()));
        }
    }
    Ok(())
}

async fn one_primary(nodes: &[Node]) -> Seen<&Node> {
    let mut primaries = Vec::new();
    for node in nodes {
        match node.role_seen().await.map_err(seen)? {
            Role::Primary => primaries.push(node),
            Role::Replica { linked: true } => {}
            role => return Err(format!("{} is {role:?}", node.name())),
        }
    }
    match primaries[..] {
        [primary] => Ok(primary),
        _ => Err(format!("{} primaries", primaries.len())),
    }
}

/// Whether a sentinel watches this primary, finds it well, and is not replacing it.
async fn of_primary(sentinel: &Node, primary: &Node) -> Seen {
    let watched = sentinel
        .look(&["SENTINEL", "MASTER", MASTER_NAME])
        .await
        .map_err(seen)?;
    let field = |name| watched.field(name).unwrap_or_default();
    let (address, flags) = (format!("{}:{}", field("ip"), field("port")), field("flags"));
    if address == primary.addr().to_string() && flags == "master" {
        Ok(())
    } else {
        let name = sentinel.name();
        Err(format!("{name} sees the primary at {address}: {flags}"))
    }
}

async fn sentinel(node: &Node, replicas: usize, peers: usize) -> Seen {
    let name = node.name();
    node.look(&["SENTINEL", "CKQUORUM", MASTER_NAME])
        .await
        .map_err(seen)?;
    let listed = node
        .look(&["SENTINEL", "REPLICAS", MASTER_NAME])
        .await
        .map_err(seen)?;
    let good = listed.items().iter().filter(|replica| {
        replica.field("master-link-status").as_deref() == Some("ok")
            && replica.field("flags").as_deref() == Some("slave")
    });
    let good = good.count();
    if good != replicas || listed.items().len() != replicas {
        return Err(format!("{name} sees {good} good replicas of {replicas}"));
    }
    let listed = node
        .look(&["SENTINEL", "SENTINELS", MASTER_NAME])
        .await
        .map_err(seen)?;
    let good = listed
        .items()
        .iter()
        .filter(|peer| peer.field("flags").as_deref() == Some("sentinel"));
    let good = good.count();
    if good == peers {
        Ok(())
    } else {
        Err(format!("{name} sees {good} peers of {peers}"))
    }
}

async fn cluster_node(node: &Node, total: usize, primaries: usize) -> Seen {
    let name = node.name();
    let info = node.look(&["CLUSTER", "INFO"]).await.map_err(seen)?.text();
    for wanted in [
        "cluster_state:ok".to_owned(),
        format!("cluster_slots_ok:{SLOTS}"),
    ] {
        if !info.lines().any(|line| line.trim() == wanted) {
            return Err(format!("{name} does not say {wanted}"));
        }
    }
    let text = node.look(&["CLUSTER", "NODES"]).await.map_err(seen)?.text();
    let mut counts = (0, 0);
    for line in text.lines() {
        let fields: Vec<_> = line.split(' ').collect();
        let flags = fields
            .get(2)
            .copied()
            .unwrap_or_default()
            .trim_start_matches("myself,");
        match (flags, fields.get(7).copied()) {
            ("master", Some("connected")) => counts.0 += 1,
            ("slave", Some("connected")) => counts.1 += 1,
            _ => return Err(format!("{name} sees {line}")),
        }
    }
    if counts != (primaries, total - primaries) {
        return Err(format!(
            "{name} sees {} primaries, {} replicas",
            counts.0, counts.1
        ));
    }
    match node.role_seen().await.map_err(seen)? {
        Role::Replica { linked: false } => Err(format!("{name} has no link to its primary")),
        _ => Ok(()),
    }
}
