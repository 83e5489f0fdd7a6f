//! A modelled server: a keyspace, a clock that somebody else moves, and what commands need besides.

use std::collections::{BTreeMap, BTreeSet};

use super::keyspace::{Change, Keyspace};
use super::reply::{Outcome, Refusal, Reply};
use super::table::{self, Command};
use super::value::Bytes;

/// Whether `TIME` goes on while a script runs. Expiry stands still either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptTime {
    /// Redis up to 7.0: each command takes this many microseconds.
    Advances(i64),
    /// Redis from 7.2 on.
    Frozen,
}

/// What a server is allowed to do.
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
    /// By `SPUBLISH`: heard by those who used `SSUBSCRIBE`, and by nobody else.
    pub sharded: bool,
    /// How many listened.
    pub receivers: usize,
}

/// One modelled server.
#[derive(Debug, Clone)]
pub struct Server {
    /// Its keys.
    pub keys: Keyspace,
    /// Its clock in microseconds since 1970. Somebody else moves it.
    pub clock: i64,
    /// What it may do.
    pub role: Role,
    /// The replication id, 40 hex digits.
    pub replid: String,
    /// Memory is used up: commands that need some are refused.
    pub out_of_memory: bool,
    /// `min-replicas-to-write` is not met: writes are refused.
    pub lacks_replicas: bool,
    /// Whether `TIME` goes on in scripts.
    pub script_time: ScriptTime,
    /// How many listen on each channel; sharded or not.
    pub listeners: BTreeMap<(bool, Vec<u8>), usize>,
    /// The command of the next script that fails, counted from 1, and with which error line.
    pub script_fault: Option<(usize, String)>,
    /// The clock at which expiry is judged while a script runs.
    pub(crate) frozen: Option<i64>,
    /// A script has written.
    pub(crate) dirty: bool,
    touched: BTreeSet<Bytes>,
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

/// Something the model cannot do. Never a server's fault, so it must not be mistaken for an error reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the model does not know {what}; extend the model or change the script")]
pub struct Unsupported {
    /// What it does not know.
    pub what: String,
}

impl Server {
    /// Runs one command sent by itself.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] if the model does not know the command or an option of it.
    pub fn command(&mut self, words: &[Vec<u8>]) -> Result<Reply, Unsupported> {
        let command = find(words)?;
        if !command.fits(words.len()) {
            let error = format!(
                "ERR wrong number of arguments for '{}' command",
                command.name
            );
            return Ok(Reply::Error(error));
        }
        if let Some(error) = self.refuses(command) {
            return Ok(Reply::Error(error.to_owned()));
        }
        finish(self.execute(command, words))
    }

    fn refuses(&self, command: &Command) -> Option<&'static str> {
        let writes = command.writes();
        if command.needs_memory() && self.out_of_memory {
            return Some(OUT_OF_MEMORY);
        }
        if writes && self.role == Role::Replica {
            return Some(READONLY);
        }
        (writes && self.lacks_replicas).then_some(NO_REPLICAS)
    }

    /// Runs a command that was checked already.
    pub(crate) fn execute(&mut self, command: &Command, words: &[Bytes]) -> Outcome {
        let keys = command.keys(words);
        // Looking at an expired key removes it, so reading may change a key too.
        let now = self.expiry_now();
        for key in &words[keys.clone()] {
            let changes = command.writes() || self.keys.has_expired(key, now);
            if changes && !self.touched.contains(key) {
                self.touched.insert(key.clone());
            }
        }
        (command.run)(self, words)
    }

    /// The clock in milliseconds.
    #[must_use]
    pub fn now(&self) -> i64 {
        self.clock / 1_000
    }

    /// The time in milliseconds at which expiry is judged.
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

    /// The messages published since the last call.
    pub fn take_published(&mut self) -> Vec<Published> {
        std::mem::take(&mut self.published)
    }

    /// What changed since the last call, for replicas.
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

    /// Every key with its type, value and expiry, as text that can be compared.
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

pub(crate) const READONLY: &str = "READONLY You can't write against a read only replica.";
pub(crate) const NO_REPLICAS: &str = "NOREPLICAS Not enough good replicas to write.";

pub(crate) const OUT_OF_MEMORY: &str = "OOM command not allowed when used memory > 'maxmemory'.";

/// Finds a command by its first word.
pub(crate) fn find(words: &[Bytes]) -> Result<&'static Command, Unsupported> {
    let name = words.first().map(Vec::as_slice).unwrap_or_default();
    table::lookup(name).ok_or_else(|| Unsupported {
        what: format!("the command {:?}", String::from_utf8_lossy(name)),
    })
}

pub(crate) fn finish(outcome: Outcome) -> Result<Reply, Unsupported> {
    match outcome {
        Ok(reply) => Ok(reply),
        Err(Refusal::Error(error)) => Ok(Reply::Error(error)),
        Err(Refusal::Unsupported(what)) => Err(Unsupported { what }),
    }
}

impl Command {
    /// The positions of the keys among the words.
    pub(crate) fn keys(&self, words: &[Bytes]) -> std::ops::Range<usize> {
        match self.keys {
            table::Keys::None => 0..0,
            table::Keys::First => 1..2.min(words.len()),
            table::Keys::All => 1..words.len(),
        }
    }
}
