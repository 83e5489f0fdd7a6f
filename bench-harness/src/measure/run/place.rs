//! The servers of a measurement: started for it, or running already.

use std::time::Duration;

use clap::ValueEnum;
use locktopus_servers::topology::{
    self, Deployment, ProviderKind, Spec, TopologyError, TopologyKind,
};

use crate::measure::model::{Provider, Server, Topology};
use crate::measure::plan::Client;

/// How to get servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ProviderChoice {
    /// Server processes if there is a server program, else containers, else none.
    #[default]
    Auto,
    /// Server processes on the loopback interface.
    Plain,
    /// Containers.
    Pod,
    /// No servers: only the in-memory backend.
    Memory,
}

/// The place where locks are kept.
#[derive(Debug)]
pub struct Place {
    deployment: Option<Deployment>,
    urls: Vec<String>,
    /// The arrangement of its servers.
    pub topology: Topology,
    /// How its servers were started.
    pub provider: Provider,
    /// Product and version of its servers.
    pub server: Option<Server>,
    /// How many servers there are, sentinels included.
    pub nodes: u32,
}

/// Why there is no such place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// The servers did not start.
    #[error("cannot start {topology}: {source}")]
    Start {
        /// Which topology.
        topology: &'static str,
        /// The error.
        source: TopologyError,
    },
}

impl Place {
    /// The in-memory backend.
    #[must_use]
    pub fn memory() -> Self {
        Self {
            deployment: None,
            urls: Vec::new(),
            topology: Topology::InProcess,
            provider: Provider::Memory,
            server: None,
            nodes: 0,
        }
    }

    /// Servers that run already.
    #[must_use]
    pub fn external(url: String, topology: Topology, server: Option<Server>) -> Self {
        Self {
            deployment: None,
            urls: vec![url],
            topology,
            provider: Provider::External,
            server,
            nodes: 0,
        }
    }

    /// Starts the servers of a topology.
    ///
    /// # Errors
    ///
    /// [`PlaceError::Start`].
    pub async fn start(
        topology: Topology,
        spec: Spec,
        provider: ProviderKind,
    ) -> Result<Self, PlaceError> {
        let failed = |source| PlaceError::Start {
            topology: topology.name(),
            source,
        };
        let deployment = topology::start(provider, &spec).await.map_err(failed)?;
        let nodes = deployment.nodes().len() + deployment.sentinels().len();
        Ok(Self {
            urls: systems(topology, &deployment),
            topology,
            provider: if provider == ProviderKind::Plain {
                Provider::Plain
            } else {
                Provider::Container
            },
            server: parse_version(deployment.server_version()),
            nodes: u32::try_from(nodes).unwrap_or(u32::MAX),
            deployment: Some(deployment),
        })
    }

    /// The URLs through which a client reaches it: several for a quorum, `nodes` at most.
    #[must_use]
    pub fn urls(&self, client: Client, nodes: Option<u32>) -> Vec<String> {
        let most = nodes.map_or(usize::MAX, |nodes| usize::try_from(nodes).unwrap_or(1));
        let url = |url: &String| match client {
            Client::Memory | Client::Redisson => url.clone(),
            Client::RedisRs => with_options(url, "redis"),
            Client::RedisRsRouter => with_options(url, "redis&router=client"),
            Client::Fred => with_options(url, "fred"),
        };
        if client == Client::Memory {
            return vec!["memory:".to_owned()];
        }
        self.urls.iter().take(most).map(url).collect()
    }

    /// Whether its servers were started for the run and have no other clients.
    #[must_use]
    pub const fn is_ours(&self) -> bool {
        matches!(self.provider, Provider::Plain | Provider::Container)
    }

    /// Delays each round trip to its servers, if they were started with a slow line.
    pub fn put_away(&self, round_trip: Duration) {
        if let Some(deployment) = &self.deployment {
            deployment.set_round_trip(round_trip);
        }
    }

    /// The processes of its servers, if they run on this machine.
    pub async fn pids(&self) -> Vec<u32> {
        let Some(deployment) = &self.deployment else {
            return Vec::new();
        };
        let mut pids = Vec::new();
        if deployment.provider() == ProviderKind::Plain {
            for node in deployment.nodes().iter().chain(deployment.sentinels()) {
                pids.extend(node.pid().await);
            }
        }
        pids
    }

    /// Stops what was started.
    ///
    /// # Errors
    ///
    /// [`PlaceError::Start`] naming what did not stop.
    pub async fn stop(self) -> Result<(), PlaceError> {
        let Some(deployment) = self.deployment else {
            return Ok(());
        };
        let topology = self.topology.name();
        deployment
            .stop()
            .await
            .map_err(|source| PlaceError::Start { topology, source })
    }
}

fn with_options(url: &str, library: &str) -> String {
    let joint = if url.contains('?') { '&' } else { '?' };
    // The checks take a probe lock, which would be counted. Many processes that start together on
    // few cores take longer to connect than a service should.
    format!("{url}{joint}client={library}&checks=off&timeout=5s&connect_timeout=10s")
}

/// A standalone deployment may have several independent servers; only one is measured.
fn systems(topology: Topology, deployment: &Deployment) -> Vec<String> {
    if topology == Topology::Quorum {
        deployment.urls()
    } else {
        vec![deployment.url()]
    }
}

/// The kind of servers for a topology of the model.
#[must_use]
pub fn kind(topology: Topology) -> Option<TopologyKind> {
    match topology {
        Topology::Standalone => Some(TopologyKind::Standalone),
        Topology::Sentinel => Some(TopologyKind::SENTINEL),
        Topology::Cluster => Some(TopologyKind::CLUSTER),
        Topology::Quorum => Some(TopologyKind::QUORUM),
        Topology::InProcess | Topology::Replicated => None,
    }
}

/// Parses `redis 7.0.15` and the like.
fn parse_version(text: &str) -> Option<Server> {
    let (flavour, version) = text.split_once(' ')?;
    Some(Server {
        flavour: flavour.to_lowercase(),
        version: version.to_owned(),
    })
}
