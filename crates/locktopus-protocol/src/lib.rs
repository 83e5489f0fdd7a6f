//! The Redis side of Locktopus, shared by every client adapter.
//!
//! Key layout, Lua scripts, reply decoding and the subscription hub live here, once.
//! An adapter implements [`RedisClient`] and nothing else.

mod backend;
pub mod backoff;
mod budget;
mod called;
pub mod client;
mod discretion;
mod executor;
mod guarded;
mod hub;
mod keys;
mod numbers;
pub mod options;
mod other_kind;
mod probe;
mod quarantine;
mod replication;
mod reply;
mod role;
pub mod scripts;
mod server_clock;
pub mod slot;
pub mod slot_map;
#[cfg(feature = "tls")]
pub mod tls;

pub use backend::{BackendOptions, PubSubMode, RedisBackend};

pub use budget::Budget;
pub use client::{
    Channel, ChannelFlavour, ClientError, Deployment, NodeReply, Pipelined, PushEvent, RedisClient,
    Reply, Route,
};
pub use discretion::Discretion;
pub use guarded::{GuardedOutcome, GuardedWriter};
pub use keys::Keys;
pub use options::{
    ClientIdentity, ConnectOptions, Credentials, HostPort, Secret, Servers, TlsOptions,
};
pub use role::{ROLE_QUESTION, says_replica};
