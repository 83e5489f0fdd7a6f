//! The records of instances, kept on every node that accepts them. There is no vote: one node with
//! the record is enough, and a failure here does not count against a node.

use std::sync::Arc;

use locktopus_contract::{
    Announcement, BackendError, BackendErrorKind, Executed, InstanceQuery, InstanceRecord,
};
use tokio::time::{Instant, timeout_at};

use super::abstention::BACKEND_NAME;
use super::fan_out::FanOut;
use super::members::Members;
use super::node::Node;

/// Sends the record to every node. Succeeds as soon as one has it; the others get it in the
/// background.
pub(super) async fn announce(
    members: &Arc<Members>,
    announcement: &Announcement,
) -> Result<(), BackendError> {
    members.ready()?;
    let mut fan = FanOut::new(members);
    let deadline = announcement.deadline;
    let until = deadline.min(Instant::now() + members.node_timeout);
    for node in keepers(members) {
        let announcement = Announcement {
            deadline: until,
            ..announcement.clone()
        };
        fan.push(async move {
            let told = timeout_at(until, node.backend.announce(&announcement)).await;
            told.unwrap_or_else(|_| Err(silent(Executed::Maybe)))
        });
    }
    let mut last = silent(Executed::Maybe);
    while let Some(told) = fan.next(deadline).await {
        match told {
            // A removal must be complete when this returns, because no one asks for it again.
            Ok(()) if announcement.record.is_some() => return Ok(()),
            Ok(()) if fan.is_empty() => return Ok(()),
            Ok(()) => {}
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The records that any of the nodes knows.
pub(super) async fn ask(
    members: &Arc<Members>,
    query: &InstanceQuery,
) -> Result<Vec<Option<InstanceRecord>>, BackendError> {
    members.ready()?;
    let mut fan = FanOut::new(members);
    let until = query.deadline.min(Instant::now() + members.node_timeout);
    for node in keepers(members) {
        let query = InstanceQuery {
            deadline: until,
            ..query.clone()
        };
        fan.push(async move {
            let told = timeout_at(until, node.backend.records(&query)).await;
            told.unwrap_or_else(|_| Err(silent(Executed::No)))
        });
    }
    let mut known = vec![None; query.instances.len()];
    let (mut answered, mut last) = (false, silent(Executed::No));
    while let Some(told) = fan.next(query.deadline).await {
        match told {
            Ok(records) => {
                answered = true;
                for (known, record) in known.iter_mut().zip(records) {
                    *known = known.take().or(record);
                }
                if known.iter().all(Option::is_some) {
                    break;
                }
            }
            Err(error) => last = error,
        }
    }
    if answered { Ok(known) } else { Err(last) }
}

fn keepers(members: &Members) -> impl Iterator<Item = Arc<Node>> {
    let keeps = |node: &&Arc<Node>| node.backend.instances().is_some();
    members.nodes.iter().filter(keeps).map(Arc::clone)
}

fn silent(executed: Executed) -> BackendError {
    let message = "no node answered in time";
    BackendError::new(BACKEND_NAME, BackendErrorKind::Timeout, executed, message)
}
