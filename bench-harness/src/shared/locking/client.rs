//! Client libraries that can talk to the servers.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// Which library talks to the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Client {
    /// None: the embedded backend.
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

impl Client {
    /// The name used in reports and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::RedisRs => "redis-rs",
            Self::RedisRsRouter => "redis-rs-router",
            Self::Fred => "fred",
            Self::Redisson => "redisson",
        }
    }
}
