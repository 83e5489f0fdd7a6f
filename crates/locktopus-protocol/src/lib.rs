//! The Redis side of Locktopus, shared by every client adapter.
//!
//! Key layout, Lua scripts, reply decoding and the subscription hub live here, once.
//! An adapter implements [`RedisClient`] and nothing else.

mod backend;
pub mod client;
mod diagnose;
mod executor;
mod hub;
mod keys;
pub mod options;
mod reply;
pub mod scripts;
mod server_clock;
pub mod slot;
mod version;

pub use backend::{BackendOptions, PubSubMode, RedisBackend};

pub use client::{
    Channel, ChannelFlavour, ClientError, Deployment, NodeReply, PushEvent, RedisClient, Reply,
    Route,
};
pub use keys::Keys;
pub use options::{
    ClientIdentity, ConnectOptions, Credentials, HostPort, Secret, Servers, TlsOptions,
};
