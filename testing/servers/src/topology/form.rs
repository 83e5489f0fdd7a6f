//! Joins cluster-mode servers into a cluster, over the wire.
//!
//! Faster than the command-line tool, and with a fixed placement of replicas.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::topology::error::TopologyError;
use crate::topology::node::Node;
use crate::topology::poll;
use crate::topology::slot::SLOTS;

/// How long to wait before introducing unacquainted nodes again: longer than an introduction is
/// valid.
const MEET_AGAIN: Duration = Duration::from_secs(3);

/// Makes the first `primaries` nodes primaries and the rest their replicas, in turn.
pub(crate) async fn cluster(nodes: &[Node], primaries: usize) -> Result<(), TopologyError> {
    assign(nodes, primaries).await?;
    let Some((first, others)) = nodes.split_first() else {
        return Ok(());
    };
    introduce(first, others).await?;
    wait_acquainted(nodes, first, others).await?;

    for (index, replica) in nodes.iter().enumerate().skip(primaries) {
        let primary = &nodes[index % primaries];
        let id = primary.command(&["CLUSTER", "MYID"]).await?.text();
        // Refused until this node has heard which slots the other one serves.
        poll::until(
            || format!("{} replicating {}", replica.name(), primary.name()),
            poll::START,
            async || {
                let reply = replica.command(&["CLUSTER", "REPLICATE", &id]).await;
                reply.map_err(|error| error.to_string())
            },
        )
        .await?;
    }
    Ok(())
}

/// Gives every node its own epoch, so that no two ever claim the same, and gives primaries their
/// slots.
async fn assign(nodes: &[Node], primaries: usize) -> Result<(), TopologyError> {
    let slots = usize::from(SLOTS);
    for (index, node) in nodes.iter().enumerate() {
        let epoch = (index + 1).to_string();
        node.command(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch])
            .await?;
        if index < primaries {
            let first = (index * slots / primaries).to_string();
            let last = ((index + 1) * slots / primaries - 1).to_string();
            node.command(&["CLUSTER", "ADDSLOTSRANGE", &first, &last])
                .await?;
        }
    }
    Ok(())
}

/// Tells the first node about the others. Repeating it changes nothing for nodes that know each
/// other.
async fn introduce(first: &Node, others: &[Node]) -> Result<(), TopologyError> {
    for other in others {
        // The bus port is computed from it. The others learn the address for clients from the
        // server itself.
        let port = other.port().to_string();
        first
            .command(&["CLUSTER", "MEET", "127.0.0.1", &port])
            .await?;
    }
    Ok(())
}

/// A node that does not answer an introduction within its timeout is forgotten for good, for
/// example if the machine stopped, so this repeats introductions.
async fn wait_acquainted(
    nodes: &[Node],
    first: &Node,
    others: &[Node],
) -> Result<(), TopologyError> {
    let expected = nodes.len().to_string();
    let again = Mutex::new(Instant::now() + MEET_AGAIN);
    for node in nodes {
        poll::until(
            || format!("{} knowing {expected} nodes", node.name()),
            poll::START,
            async || {
                let text = match node.look(&["CLUSTER", "NODES"]).await {
                    Ok(reply) => reply.text(),
                    Err(error) => return Err(error.to_string()),
                };
                // During a handshake the name of a node is still made up.
                let known = text.lines().filter(|line| !line.contains("handshake"));
                let known = known.count().to_string();
                if known == expected {
                    return Ok(());
                }
                let mut again = again.lock().await;
                if Instant::now() >= *again {
                    let repeated = introduce(first, others).await;
                    repeated.map_err(|error| error.to_string())?;
                    *again = Instant::now() + MEET_AGAIN;
                }
                Err(format!("{known} known"))
            },
        )
        .await?;
    }
    Ok(())
}
