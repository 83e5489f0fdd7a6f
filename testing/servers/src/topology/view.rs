//! Which node accepts writes at the moment, as the servers themselves see it.

use crate::topology::kind::TopologyKind;
use crate::topology::node::{Node, Role};
use crate::topology::plan::MASTER_NAME;

/// The node that accepts writes for `slot` (which matters only in a cluster), or why there is none.
pub(crate) async fn primary_of<'a>(
    kind: TopologyKind,
    nodes: &'a [Node],
    sentinels: &[Node],
    slot: u16,
) -> Result<&'a Node, String> {
    match kind {
        TopologyKind::Sentinel { .. } => by_sentinels(nodes, sentinels).await,
        TopologyKind::Cluster { .. } => by_claims(nodes, slot).await,
        TopologyKind::Standalone | TopologyKind::Quorum { .. } | TopologyKind::Tls => {
            nodes.first().ok_or_else(|| "no nodes".to_owned())
        }
    }
}

/// The address that most answering sentinels give, if the server there agrees.
async fn by_sentinels<'a>(nodes: &'a [Node], sentinels: &[Node]) -> Result<&'a Node, String> {
    let mut votes = vec![0_usize; nodes.len()];
    let asked = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER_NAME];
    for sentinel in sentinels {
        let Ok(reply) = sentinel.look(&asked).await else {
            continue;
        };
        let port = reply
            .items()
            .get(1)
            .map(|port| port.text())
            .unwrap_or_default();
        let named = |node: &Node| node.addr().port().to_string() == port;
        if let Some(index) = nodes.iter().position(named) {
            votes[index] += 1;
        }
    }
    let quorum = sentinels.len() / 2 + 1;
    let index = votes
        .iter()
        .position(|count| *count >= quorum)
        .ok_or_else(|| format!("sentinels do not agree: votes per node {votes:?}"))?;
    let node = &nodes[index];
    match node.role_seen().await {
        Ok(Role::Primary) => Ok(node),
        Ok(role) => Err(format!("{} is named but is {role:?}", node.name())),
        Err(error) => Err(error.to_string()),
    }
}

/// Of the nodes that claim the slot, the one with the highest epoch: a replaced primary that has
/// not heard of it still claims the slot, with a lower epoch.
async fn by_claims(nodes: &[Node], slot: u16) -> Result<&Node, String> {
    let mut best: Option<(u64, &Node)> = None;
    let mut silent = 0;
    for node in nodes {
        let Ok(reply) = node.look(&["CLUSTER", "NODES"]).await else {
            silent += 1;
            continue;
        };
        if let Some(epoch) = own_claim(&reply.text(), slot)
            && best.is_none_or(|(highest, _)| epoch > highest)
        {
            best = Some((epoch, node));
        }
    }
    best.map(|(_, node)| node)
        .ok_or_else(|| format!("no node claims slot {slot}; {silent} did not answer"))
}

/// The epoch of the answering node's own claim to `slot`.
fn own_claim(nodes: &str, slot: u16) -> Option<u64> {
    let own = nodes.lines().find(|line| line.contains("myself"))?;
    let fields: Vec<_> = own.split_whitespace().collect();
    let (flags, epoch, ranges) = (fields.get(2)?, fields.get(6)?, fields.get(8..)?);
    let covers = |range: &&str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        match (first.parse::<u16>(), last.parse::<u16>()) {
            (Ok(first), Ok(last)) => (first..=last).contains(&slot),
            _ => false,
        }
    };
    (flags.contains("master") && ranges.iter().any(covers)).then(|| epoch.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::own_claim;

    #[test]
    fn only_own_slots_of_a_primary_count() {
        let text = "a 127.0.0.1:1@2 master - 0 0 9 connected 0-99\n\
                    b 127.0.0.1:3@4 myself,master - 0 0 7 connected 100-199 300\n";
        assert_eq!(own_claim(text, 150), Some(7));
        assert_eq!(own_claim(text, 300), Some(7));
        assert_eq!(own_claim(text, 50), None);
        let replica = "b 127.0.0.1:3@4 myself,slave a 0 0 7 connected\n";
        assert_eq!(own_claim(replica, 150), None);
    }
}
