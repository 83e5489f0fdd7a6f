//! Locktopus over the fred client, for standalone servers, Sentinel and Cluster. Most programs use
//! it through the facade `locktopus` (feature `fred`). Use this crate directly to build a backend
//! on the client yourself.
//!
//! [`connect`] returns a [`FredClient`], which implements
//! [`RedisClient`](locktopus_protocol::RedisClient). The public interface contains no fred types,
//! except for [reading](from_config) the configuration of a client that your program already has.
//!
//! fred does the protocol, TLS and pipelining. This crate decides when to connect and where to
//! send. fred's own router queues commands while disconnected, writes them after their callers have
//! given up, and serves no cluster node while one is unreachable. Here each fred client is a single
//! connection, discarded when it fails. So a command is written to a live connection at once, or
//! not at all. This crate also asks the sentinels itself, all at once.
//!
//! | module | what it does |
//! |---|---|
//! | `connect`, `client` | builds a client from options; the client itself |
//! | `settings` | reads options from a program's fred configuration |
//! | `connection::dial` | makes one connection |
//! | `connection::conn` | one live connection: send, check, kill |
//! | `connection::link`, `links` | keeps one connection alive; all connections to a server |
//! | `connection::messages` | subscribes on a connection and forwards its messages |
//! | `single` | standalone and Sentinel |
//! | `cluster` | routing; the slot table and its refresh; subscriptions and the node of each |
//!
//! Layers, lowest first: connection, single, cluster.
//!
//! # Limits
//!
//! A command cannot be taken back when its caller gives up: its bytes may be in a socket buffer. A
//! frozen server runs it when it thaws, at most once.
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

pub use client::FredClient;
#[cfg(test)]
use connection::address::names;

pub use connect::connect;
pub use fred;
pub use locktopus_protocol::ConnectError;
pub use settings::{from_builder, from_client, from_config};
