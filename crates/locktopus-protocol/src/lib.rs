//! The Redis side of Locktopus, shared by every client adapter.
//!
//! Key layout, Lua scripts, reply decoding and the subscription hub live here, once.
//! An adapter implements [`RedisClient`] and nothing else.

pub mod client;
pub mod options;
pub mod slot;

pub use client::{
    Channel, ChannelFlavour, ClientError, Deployment, NodeReply, PushEvent, RedisClient, Reply, Route,
};
pub use options::{ClientIdentity, ConnectOptions, Credentials, HostPort, Secret, Servers, TlsOptions};
