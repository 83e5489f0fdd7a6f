//! Locktopus over the redis-rs client. Most programs use it through the facade `locktopus` (feature
//! `redis`). Use this crate directly to build a backend on the client yourself.
//!
//! [`connect()`] builds a [`RedisRsClient`], which implements [`locktopus_protocol::RedisClient`]
//! for standalone servers, Sentinel and Cluster.
//!
//! It uses only the multiplexed connection of redis-rs, unless you ask for its cluster connection
//! ([`ClusterRouter`](locktopus_protocol::ClusterRouter), feature `cluster-async`). The rest is
//! built here (finding the primary, the slot map, reconnecting, subscriptions), because locks need
//! more than a general-purpose client offers:
//!
//! * each command is written at most once, and its error says whether it may have run;
//! * a dead or frozen node delays only the callers of its own slots;
//! * a subscription that may have missed messages reports that.
//!
//! The public interface contains no redis-rs types, except for [reading](from_connection_info) the
//! settings of a client that your program already has.
//!
//! | module | what is in it |
//! |---|---|
//! | `connect`, `client` | builds a client from options; the client itself |
//! | `settings` | reads options from a program's redis-rs configuration |
//! | `connection` | one connection to one server: dialling, sentinels, TLS, sending, health |
//! | `single` | one primary: standalone or named by sentinels |
//! | `cluster` | one connection per primary; the slot map and its refresh |
//! | `topology` | both behind one interface |
//! | `subscriptions` | subscribes, and tracks which server carries each channel |
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
pub use locktopus_protocol::ConnectError;
pub use redis;
pub use settings::{from_cluster_nodes, from_connection_info, from_sentinels};
