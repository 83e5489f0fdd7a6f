//! A modelled Redis server: enough of one to run lock scripts, with a clock that tests move.
//!
//! Layers, lowest first: reply, value, numbers, keyspace, server, hashes, keys, lists, misc, scan,
//! sets, sorted, strings, sorted_range, table, execute.

mod execute;
mod hashes;
mod keys;
mod keyspace;
mod lists;
mod misc;
mod numbers;
mod reply;
mod scan;
mod server;
mod sets;
mod sorted;
mod sorted_range;
mod strings;
mod table;
mod value;

pub use keyspace::{Change, Keyspace};
pub use reply::Reply;
pub use server::{Published, Role, ScriptTime, Server, Unsupported};
pub use value::{Entry, Value};

pub(crate) use execute::{NO_REPLICAS, OUT_OF_MEMORY, READONLY, find};
pub(crate) use numbers::{general, truncated};
pub(crate) use reply::{Outcome, Refusal};
