//! The Redis side of Locktopus, shared by every client adapter. For those who write an adapter for
//! another client library.
//!
//! Key layout, Lua scripts, reply decoding and the subscription hub live here, once.
//! An adapter implements [`RedisClient`] and nothing else.
//!
//! | module | what is in it |
//! |---|---|
//! | `layout` | hash tags and slots |
//! | [`client`] | what an adapter implements: [`RedisClient`], its answers and errors; connection settings, time budget, back-off, slot map, sentinels |
//! | [`scripts`], `lua/` | the Lua scripts, put together from the parts in `lua/part` |
//! | `kinds` | a row for each kind of lock: its scripts, keys and channel |
//! | `wire` | arguments and replies of scripts |
//! | `execution` | how a script is run: the executor, `WAIT` for replicas, the quarantine |
//! | `hub` | the subscription hub: which channels are wanted, who waits for them, what to do when messages may be lost |
//! | `backend` | [`RedisBackend`]: each operation of the backend contract in a file of its own; safety modes; connect-time checks |
//! | `guarded` | [`GuardedWriter`]: writes to users' own keys that a fencing token protects |
//!
//! Layers, lowest first: layout, client, scripts, kinds, wire, execution, hub, backend.
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod backend;
pub mod client;
mod execution;
mod guarded;
mod hub;
mod kinds;
mod layout;
pub mod scripts;
mod wire;

pub use backend::{BackendOptions, PubSubMode, RedisBackend};
pub use client::budget::Budget;
pub use client::credentials::{CredentialsError, CredentialsProvider, Login, ProvideCredentials};
pub use client::options::{
    ClientIdentity, ClusterRouter, ConnectOptions, Credentials, HostPort, ReadSettings, Secret,
    SentinelTls, Servers, SettingsError, TlsOptions,
};
pub use client::role::{ROLE_QUESTION, says_replica};
pub use client::secret_filter::SecretFilter;
#[cfg(feature = "tls")]
pub use client::tls;
pub use client::{
    Channel, ChannelFlavour, ClientError, Deployment, NodeReply, Pipelined, PushEvent, RedisClient,
    Reply, Route,
};
pub use client::{backoff, options, sentinels, slot_map};
pub use guarded::{GuardedOutcome, GuardedWriter};
pub use kinds::keys::Keys;
pub use layout::slot;
