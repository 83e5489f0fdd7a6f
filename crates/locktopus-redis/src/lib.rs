//! Locktopus over the redis-rs client. Programs get it through the facade
//! `locktopus` (feature `redis`); this crate is for those who build a backend on the client
//! themselves.
//!
//! [`connect()`] builds a [`RedisRsClient`], which implements
//! [`locktopus_protocol::RedisClient`] on a standalone server, behind Sentinel and on a Cluster.
//!
//! Only the multiplexed connection of redis-rs is used, unless its cluster connection is asked for
//! ([`ClusterRouter`](locktopus_protocol::ClusterRouter), feature `cluster-async`). What is built
//! on top of it here (finding the primary, the slot map, reconnecting, subscriptions) is what a
//! lock needs to be done differently from a general-purpose client:
//!
//! * a command is written at most once, and its error says honestly whether it can have run;
//! * a node that is dead or frozen delays nobody but the callers of its own slots;
//! * a subscription that may have missed something says so.
//!
//! No type of redis-rs appears in the public interface, but for what [reads](from_connection_info)
//! the settings of a client that a program has already.
//!
//! | module | what is in it |
//! |---|---|
//! | `connect`, `client` | from options to a connected client; the client itself |
//! | `settings` | from a program's own configuration of redis-rs to options |
//! | `connection` | one connection to one server: dialling, sentinels, TLS, sending, health |
//! | `single` | one primary: standalone or named by sentinels |
//! | `cluster` | a connection for each primary; the slot map and its refresh |
//! | `topology` | the two behind one interface |
//! | `subscriptions` | subscribing, and which channel is subscribed to on which server |
//!
//! Layers, lowest first: connection, single, cluster, topology, subscriptions.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod client;
mod cluster;
mod connect;
mod connection;
mod settings;
#[cfg(test)]
#[path = "../../locktopus-protocol/client-tests/several_addresses.rs"]
mod several_addresses;
mod single;
mod subscriptions;
mod topology;

pub use client::RedisRsClient;
#[cfg(test)]
use connection::stream::names;

pub use connect::connect;
#[cfg(feature = "cluster-async")]
pub use connect::connect_through;
pub use connection::error::ConnectError;
pub use redis;
pub use settings::{from_cluster_nodes, from_connection_info, from_sentinels};
