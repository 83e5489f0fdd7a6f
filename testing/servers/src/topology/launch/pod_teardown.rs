//! The end of a pod: first all servers at once, and then their namespace.

use std::sync::Arc;

use futures_util::future::join_all;

use super::Launched;
use crate::topology::error::TopologyError;
use crate::topology::host::Host;
use crate::topology::node::Node;
use crate::topology::pod::engine::failed;
use crate::topology::pod::{Container, Pod};

/// Removes a pod and waits for it.
pub(crate) async fn stop(mut launched: Launched) -> Result<(), TopologyError> {
    let (nodes, pod) = take(&mut launched);
    remove(containers(nodes), pod).await
}

/// As [`stop`] during a drop, on its own thread and runtime: the current ones may be busy with the
/// drop itself, or may not exist.
pub(crate) fn remove_blocking(launched: &mut Launched) {
    let (nodes, pod) = take(launched);
    let Some(pod) = pod else {
        return;
    };
    let remover = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        if let Ok(runtime) = runtime {
            // After a failure here, the sweep of a later start removes the rest.
            let _ = runtime.block_on(remove(containers(nodes), Some(pod)));
        }
    });
    let _ = remover.join();
}

fn take(launched: &mut Launched) -> (Vec<Node>, Option<Pod>) {
    let mut nodes = std::mem::take(&mut launched.nodes);
    nodes.append(&mut launched.sentinels);
    (nodes, launched.pod.take())
}

fn containers(nodes: Vec<Node>) -> Vec<Container> {
    nodes
        .into_iter()
        .filter_map(|node| match node.into_host() {
            Host::Pod(node) => Some(node.into_container()),
            Host::Plain(_) => None,
        })
        .collect()
}

async fn remove(mut containers: Vec<Container>, pod: Option<Pod>) -> Result<(), TopologyError> {
    let (mut idle, mut partition) = (None, None);
    if let Some(pod) = pod {
        idle = Some(pod.idle);
        partition = Some(pod.partition);
    }
    // The nodes held the other references and are gone by now.
    let helper = partition
        .and_then(Arc::into_inner)
        .and_then(|rules| rules.into_helper());
    containers.extend(helper);
    let removed = join_all(containers.into_iter().map(Container::rm)).await;
    if let Some(idle) = idle {
        idle.rm().await.map_err(failed("remove the pod"))?;
    }
    let removed: Result<(), _> = removed.into_iter().collect();
    removed.map_err(failed("remove a server"))
}
