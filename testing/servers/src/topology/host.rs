//! The host of a server, behind one set of verbs.

use std::time::Duration;

use crate::topology::error::TopologyError;
use crate::topology::plain::Process;
#[cfg(feature = "pod")]
use crate::topology::pod::PodNode;
use crate::topology::provider::{Isolation, ProviderKind};

/// The host of one server.
#[derive(Debug)]
pub(crate) enum Host {
    Plain(Process),
    #[cfg(feature = "pod")]
    Pod(Box<PodNode>),
}

/// Calls the same verb on either host.
macro_rules! each {
    ($host:expr, $node:ident => $call:expr) => {
        match $host {
            Host::Plain($node) => $call,
            #[cfg(feature = "pod")]
            Host::Pod($node) => $call,
        }
    };
}

impl Host {
    pub(crate) async fn id(&self) -> String {
        match self {
            Self::Plain(process) => match process.pid().await {
                Some(pid) => format!("process {pid}"),
                None => "no process".to_owned(),
            },
            #[cfg(feature = "pod")]
            Self::Pod(node) => format!("container {}", node.id()),
        }
    }

    pub(crate) async fn pid(&self) -> Option<u32> {
        match self {
            Self::Plain(process) => process.pid().await,
            #[cfg(feature = "pod")]
            Self::Pod(_) => None,
        }
    }

    pub(crate) async fn freeze(&self) -> Result<(), TopologyError> {
        each!(self, node => node.freeze().await)
    }

    pub(crate) async fn thaw(&self) -> Result<(), TopologyError> {
        each!(self, node => node.thaw().await)
    }

    pub(crate) async fn crash(&self) -> Result<(), TopologyError> {
        each!(self, node => node.crash().await)
    }

    pub(crate) async fn stop(&self, grace: Duration) -> Result<(), TopologyError> {
        each!(self, node => node.stop(grace).await)
    }

    pub(crate) async fn start(&self) -> Result<(), TopologyError> {
        each!(self, node => node.start().await)
    }

    /// How the server ended, unless it is running.
    pub(crate) async fn ending(&self) -> Option<String> {
        each!(self, node => node.ending().await)
    }

    #[cfg_attr(
        not(feature = "pod"),
        allow(clippy::unused_async, reason = "only containers need to wait here")
    )]
    pub(crate) async fn last_output(&self) -> String {
        match self {
            Self::Plain(process) => process.last_output(),
            #[cfg(feature = "pod")]
            Self::Pod(node) => node.last_output().await,
        }
    }

    #[cfg_attr(
        not(feature = "pod"),
        allow(clippy::unused_async, reason = "only containers need to wait here")
    )]
    /// The server's output, as far as it is available.
    pub(crate) async fn output(&self) -> String {
        match self {
            Self::Plain(process) => process.output(),
            #[cfg(feature = "pod")]
            Self::Pod(node) => node.last_output().await,
        }
    }

    #[cfg_attr(
        not(feature = "pod"),
        allow(clippy::unused_async, reason = "only containers need to wait here")
    )]
    pub(crate) async fn isolate(&self, from: Isolation) -> Result<(), TopologyError> {
        match self {
            Self::Plain(_) => Err(plain_cannot(format!("isolate from {from}"))),
            #[cfg(feature = "pod")]
            Self::Pod(node) => node.isolate(from).await,
        }
    }

    #[cfg_attr(
        not(feature = "pod"),
        allow(clippy::unused_async, reason = "only containers need to wait here")
    )]
    pub(crate) async fn heal(&self) -> Result<(), TopologyError> {
        match self {
            Self::Plain(_) => Ok(()),
            #[cfg(feature = "pod")]
            Self::Pod(node) => node.heal().await,
        }
    }

    pub(crate) fn set_clock_ahead(&self, ahead: Duration) -> Result<(), TopologyError> {
        match self {
            Self::Plain(process) => process.set_clock_ahead(ahead),
            #[cfg(feature = "pod")]
            Self::Pod(_) => Err(TopologyError::Unsupported {
                verb: "set the clock".to_owned(),
                provider: ProviderKind::Pod,
                needs: "the plain provider: containers share the clock of their machine".to_owned(),
            }),
        }
    }

    /// Starts the teardown without waiting for it.
    pub(crate) fn begin_end(&mut self) {
        match self {
            Self::Plain(process) => process.begin_end(),
            #[cfg(feature = "pod")]
            Self::Pod(_) => {}
        }
    }
}

fn plain_cannot(verb: String) -> TopologyError {
    TopologyError::Unsupported {
        verb,
        provider: ProviderKind::Plain,
        needs: "servers in a network namespace of their own, as the pod provider has".to_owned(),
    }
}
