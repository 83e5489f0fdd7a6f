//! Locktopus over the fred client: standalone, Sentinel and Cluster. Programs get it through the
//! facade `locktopus` (feature `fred`); this crate is for those who build a backend on the client
//! themselves.
//!
//! [`connect`] gives a [`FredClient`], which implements
//! [`RedisClient`](locktopus_protocol::RedisClient). No type of fred appears in this crate's API,
//! but for what [reads](from_config) the configuration of a client that a program has already.
//!
//! fred does the protocol, TLS and pipelining. This crate decides when to connect and where to
//! send, because fred's router queues commands while it is disconnected, writes them after their
//! callers have given up, and serves no node of a cluster while one is unreachable. Sentinels it
//! asks by itself too, all at once. Here every fred client is a single connection that is thrown
//! away when it fails, so a command is written to a live connection at once or not at all.
//!
//! | module | job |
//! |---|---|
//! | `connect`, `client` | from options to a connected client; the client itself |
//! | `settings` | from a program's own configuration of fred to options |
//! | `connection::dial` | make one connection |
//! | `connection::conn` | one live connection: send, check, kill |
//! | `connection::link` | keep one connection alive |
//! | `connection::messages` | subscribe on a connection and forward its messages |
//! | `single` | standalone and Sentinel |
//! | `cluster` | routing; the slot table and its refresh; subscriptions, and which node carries which |
//!
//! Layers, lowest first: connection, single, cluster.
//!
//! # What remains
//!
//! A command whose caller gives up is not taken back: its bytes may be in a socket buffer. A frozen
//! server runs them when it thaws, at most once.
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
pub use connection::error::ConnectError;
pub use fred;
pub use settings::{from_builder, from_client, from_config};
