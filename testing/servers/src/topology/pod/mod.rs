//! Servers as containers that share one network namespace.
//!
//! An idle container owns the namespace and publishes every port on loopback only, under the same
//! number. Servers announce those addresses, gossip inside, and are reachable outside, so no client
//! needs an address map. No network is created, because a killed harness could not remove it.

pub(crate) mod engine;
mod node;
pub(crate) mod partition;
pub(crate) mod requests;
mod sweep;

use std::sync::Arc;

use testcontainers::{ContainerAsync, GenericImage};

pub(crate) use node::PodNode;
pub(crate) use sweep::{remove_run, sweep};

use partition::Partition;

pub(crate) type Container = ContainerAsync<GenericImage>;

/// A server's directory inside its container.
pub(crate) const DIR: &str = "/tmp/node";

/// The shared part of a pod's nodes.
#[derive(Debug)]
pub(crate) struct Pod {
    /// Owns the network namespace; removed last.
    pub(crate) idle: Container,
    pub(crate) partition: Arc<Partition>,
}
