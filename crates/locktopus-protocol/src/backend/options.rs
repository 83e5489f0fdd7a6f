//! The options of a backend.

use std::time::Duration;

use locktopus_contract::{SafetyMode, TokenRetention};

/// The options of a [`RedisBackend`](crate::RedisBackend).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendOptions {
    /// How long to wait for one answer. Default 1 s.
    pub call_timeout: Duration,
    /// How long a lock's token key stays after its last grant, if a request does not say. Default:
    /// a day.
    pub token_retention: TokenRetention,
    /// Which flavour of pub/sub to use. All clients that share locks must use the same.
    pub pubsub: PubSubMode,
    /// How a grant is protected against the failure of a server. All clients that share locks must
    /// use the same mode. Default: plain.
    pub safety: SafetyMode,
    /// The prefix of the connect-time probe's lock, `locktopus:probe`: the namespace, so that a
    /// user limited to keys with that prefix passes. Default: empty.
    pub probe_prefix: String,
}

impl Default for BackendOptions {
    fn default() -> Self {
        Self {
            call_timeout: Duration::from_secs(1),
            token_retention: TokenRetention::default(),
            pubsub: PubSubMode::Auto,
            safety: SafetyMode::Plain,
            probe_prefix: String::new(),
        }
    }
}

/// Which flavour of pub/sub announces releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PubSubMode {
    /// Redisson's rule: sharded in a cluster whose servers support it, else plain.
    #[default]
    Auto,
    /// `PUBLISH` and `SUBSCRIBE`.
    Plain,
    /// `SPUBLISH` and `SSUBSCRIBE`; clusters only.
    Sharded,
}
