//! Client libraries that can talk to the servers.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::shared::names::names;

/// The library that talks to the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Client {
    /// None: the in-memory backend.
    Memory,
    /// redis-rs.
    #[value(alias = "redis")]
    #[serde(alias = "redis")]
    RedisRs,
    /// redis-rs with its own cluster connection, on clusters only.
    RedisRsRouter,
    /// fred.
    Fred,
    /// Redisson, which measures only itself.
    Redisson,
}

names! {
    Client: Memory = "memory", RedisRs = "redis-rs", RedisRsRouter = "redis-rs-router", Fred = "fred", Redisson = "redisson";
}
