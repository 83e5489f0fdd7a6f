//! The Redis side of Locktopus: key layout, Lua scripts, reply decoding and the subscription hub.
//! All client adapters share it. To support another client library, implement [`RedisClient`] in an
//! adapter of your own.
//!
//! | module | what is in it |
//! |---|---|
//! | `layout` | hash tags and slots |
//! | [`client`] | [`RedisClient`], which adapters implement; settings, back-off, sentinels, slots |
//! | [`scripts`], `lua/` | the Lua scripts, assembled from the parts in `lua/part` |
//! | `kinds` | a row for each kind of lock: its scripts, keys and channel |
//! | `wire` | arguments and replies of scripts |
//! | `execution` | runs a script: the executor, `WAIT` for replicas, the quarantine |
//! | `hub` | the subscription hub: wanted channels, their waiters, recovery after disruptions |
//! | `backend` | [`RedisBackend`], one file per operation of the contract; safety modes, checks |
//! | `guarded` | [`GuardedWriter`]: writes to users' own keys, protected by a fencing token |
//!
//! Layers, lowest first: layout, client, scripts, kinds, wire, execution, hub, backend.
#![expect(
    clippy::exhaustive_enums,
    clippy::exhaustive_structs,
    reason = "protocol and adapters are released together"
)]

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
pub use client::connect_error::ConnectError;
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
pub use locktopus_contract::lock;
