//! Servers that run but are not known to be ready yet, and the handles that keep them alive.

pub(super) mod plain;
#[cfg(feature = "pod")]
pub(super) mod pod;
#[cfg(feature = "pod")]
mod pod_teardown;
mod teardown;

use std::sync::Arc;

pub(crate) use teardown::stop;

use crate::topology::error::TopologyError;
use crate::topology::form;
use crate::topology::kind::TopologyKind;
use crate::topology::node::Node;
use crate::topology::plain::RunDir;
#[cfg(feature = "pod")]
use crate::topology::pod::Pod;
use crate::topology::poll;
use crate::topology::ports::PortBlock;
use crate::topology::provider::{Caps, ProviderKind};
use crate::topology::ready;
use crate::topology::spec::Spec;
use crate::topology::tls::TlsFiles;
use crate::topology::vip::Vip;

/// The result of a provider. Fields are dropped in this order: servers first, ports last.
#[derive(Debug)]
pub(crate) struct Launched {
    pub(crate) provider: ProviderKind,
    pub(crate) caps: Caps,
    /// Program or image.
    pub(crate) label: String,
    pub(crate) nodes: Vec<Node>,
    pub(crate) sentinels: Vec<Node>,
    /// In front of every server, if the servers are distant.
    pub(crate) proxies: Vec<Vip>,
    pub(crate) tls: Option<TlsFiles>,
    #[cfg(feature = "pod")]
    pub(crate) pod: Option<Pod>,
    pub(crate) run: Arc<RunDir>,
    pub(crate) _ports: PortBlock,
}

impl Launched {
    /// Waits until the data nodes answer and have joined each other.
    pub(crate) async fn wait_data_nodes(&self, spec: &Spec) -> Result<(), TopologyError> {
        for node in &self.nodes {
            node.wait_answering(poll::START).await?;
        }
        match spec.kind() {
            TopologyKind::Cluster { primaries, .. } => {
                form::cluster(&self.nodes, usize::from(primaries)).await
            }
            // A sentinel that first checks before the links are up checks again only ten seconds
            // later.
            TopologyKind::Sentinel { .. } => ready::replicas_linked(&self.nodes).await,
            TopologyKind::Standalone | TopologyKind::Quorum { .. } | TopologyKind::Tls => Ok(()),
        }
    }

    /// Waits until the sentinels answer.
    pub(crate) async fn wait_sentinels(&self) -> Result<(), TopologyError> {
        for node in &self.sentinels {
            node.wait_answering(poll::START).await?;
        }
        Ok(())
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        // All at once instead of one after the other.
        #[cfg(feature = "pod")]
        pod_teardown::remove_blocking(self);
        for node in self.nodes.iter_mut().chain(&mut self.sentinels) {
            node.begin_end();
        }
    }
}
