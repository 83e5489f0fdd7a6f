//! A modelled server: a keyspace, a clock that the caller moves, and other state of commands.

use std::collections::{BTreeMap, BTreeSet};

use crate::redis::keyspace::{Change, Keyspace};
use crate::redis::reply::Reply;
use crate::redis::value::Bytes;

/// Whether `TIME` advances while a script runs. Expiry stands still either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptTime {
    /// Redis up to 7.0. Each command takes this many microseconds.
    Advances(i64),
    /// Redis from 7.2 on.
    Frozen,
}

/// The role of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Takes writes.
    Primary,
    /// Refuses writes.
    Replica,
}

/// A message on a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The channel.
    pub channel: Vec<u8>,
    /// The payload.
    pub message: Vec<u8>,
    /// Sent by `SPUBLISH`, so that only `SSUBSCRIBE` receives it.
    pub sharded: bool,
    /// How many listened.
    pub receivers: usize,
}

/// One modelled server.
#[derive(Debug, Clone)]
pub struct Server {
    /// Its keys.
    pub keys: Keyspace,
    /// Its clock in microseconds since 1970. The caller moves it.
    pub clock: i64,
    /// Its role.
    pub role: Role,
    /// The replication id, 40 hex digits.
    pub replid: String,
    /// Memory is used up: commands that need more are refused.
    pub out_of_memory: bool,
    /// `min-replicas-to-write` is not met: writes are refused.
    pub lacks_replicas: bool,
    /// Whether `TIME` advances in scripts.
    pub script_time: ScriptTime,
    /// How many listeners each channel has, by whether it is sharded.
    pub listeners: BTreeMap<(bool, Vec<u8>), usize>,
    /// The command of the next script that fails, counted from 1, and its error line.
    pub script_fault: Option<(usize, String)>,
    /// The time that decides about expiry while a script runs.
    pub(crate) frozen: Option<i64>,
    /// Whether the script has written.
    pub(crate) dirty: bool,
    /// Keys that may have changed since `take_changes`.
    pub(super) touched: BTreeSet<Bytes>,
    published: Vec<Published>,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            keys: Keyspace::default(),
            clock: 1_700_000_000_000_000,
            role: Role::Primary,
            replid: "0".repeat(40),
            out_of_memory: false,
            lacks_replicas: false,
            script_time: ScriptTime::Advances(1),
            listeners: BTreeMap::new(),
            script_fault: None,
            frozen: None,
            dirty: false,
            touched: BTreeSet::new(),
            published: Vec::new(),
        }
    }
}

/// The model lacks something. That is never a server's error, so it must not look like an error
/// reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the model does not know {what}; extend the model or change the script")]
pub struct Unsupported {
    /// What it lacks.
    pub what: String,
}

impl Server {
    /// The clock in milliseconds.
    #[must_use]
    pub fn now(&self) -> i64 {
        self.clock / 1_000
    }

    /// The time in milliseconds that decides about expiry.
    pub(crate) fn expiry_now(&self) -> i64 {
        self.frozen.unwrap_or(self.clock) / 1_000
    }

    pub(crate) fn publish(&mut self, channel: &[u8], message: &[u8], sharded: bool) -> Reply {
        let listeners = self.listeners.get(&(sharded, channel.to_vec()));
        let listeners = listeners.copied().unwrap_or(0);
        self.published.push(Published {
            channel: channel.to_vec(),
            message: message.to_vec(),
            sharded,
            receivers: listeners,
        });
        Reply::count(listeners)
    }

    /// The messages published and not taken yet.
    #[must_use]
    pub fn published(&self) -> &[Published] {
        &self.published
    }

    /// Writes the entry that another server had under a key, or deletes the key.
    pub fn write(&mut self, change: Change) {
        self.touched.insert(change.0.clone());
        self.keys.apply(change);
    }

    /// The messages published since the last call.
    pub fn take_published(&mut self) -> Vec<Published> {
        std::mem::take(&mut self.published)
    }

    /// The changes since the last call, for replicas.
    pub fn take_changes(&mut self) -> Vec<Change> {
        let touched = std::mem::take(&mut self.touched);
        touched
            .into_iter()
            .map(|key| {
                let entry = self.keys.stored(&key).cloned();
                (key, entry)
            })
            .collect()
    }

    /// Every key with its value and its expiry as an absolute time, so it changes only with a
    /// write.
    #[must_use]
    pub fn picture(&self) -> Vec<(String, String)> {
        let lines = self.keys.iter(self.expiry_now()).map(|(key, entry)| {
            let value = format!("{} {:?}", entry.value, entry.expires_at);
            (String::from_utf8_lossy(key).into_owned(), value)
        });
        lines.collect()
    }

    /// Every key with its value and remaining time, as text to compare.
    #[must_use]
    pub fn dump(&self) -> String {
        let lines = self.keys.iter(self.expiry_now()).map(|(key, entry)| {
            let left = entry.expires_at.map(|at| at - self.now());
            let left = left.map_or_else(|| "for ever".to_owned(), |left| format!("{left} ms"));
            format!(
                "    {} = {} ({left})",
                String::from_utf8_lossy(key),
                entry.value
            )
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}
