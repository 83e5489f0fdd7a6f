//! Keys, their values and their expiry.
//!
//! As on a real server, an expired key is gone for every command, and the next access removes it.
//! The caller passes the time: inside a script, expiry may stand still while `TIME` advances.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::redis::reply::{Refusal, WRONG_TYPE};
use crate::redis::value::{Bytes, Entry, Value};

/// The keys of one server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Keyspace {
    entries: BTreeMap<Bytes, Entry>,
}

/// The new entry of a key, for copies of a keyspace. `None` if it was removed.
pub type Change = (Vec<u8>, Option<Entry>);

macro_rules! typed {
    ($read:ident, $write:ident, $variant:ident, $target:ty, $empty:expr) => {
        /// Reads a key of this type.
        pub(crate) fn $read(&mut self, key: &[u8], now: i64) -> Result<Option<&$target>, Refusal> {
            match self.live(key, now).map(|entry| &entry.value) {
                None => Ok(None),
                Some(Value::$variant(value)) => Ok(Some(value)),
                Some(_) => Err(WRONG_TYPE.into()),
            }
        }

        /// The value of a key of this type, created if it does not exist.
        pub(crate) fn $write(&mut self, key: &[u8], now: i64) -> Result<&mut $target, Refusal> {
            self.live(key, now);
            let entry = self.entries.entry(key.to_vec()).or_insert_with(|| Entry {
                value: Value::$variant($empty),
                expires_at: None,
            });
            match &mut entry.value {
                Value::$variant(value) => Ok(value),
                _ => Err(WRONG_TYPE.into()),
            }
        }
    };
}

impl Keyspace {
    typed!(text, text_mut, Text, Bytes, Vec::new());
    typed!(hash, hash_mut, Hash, Vec<(Bytes, Bytes)>, Vec::new());
    typed!(list, list_mut, List, VecDeque<Bytes>, VecDeque::new());
    typed!(set, set_mut, Set, BTreeSet<Bytes>, BTreeSet::new());
    typed!(sorted, sorted_mut, Sorted, Vec<(f64, Bytes)>, Vec::new());

    /// The entry of a key that exists at `now`, a time in milliseconds.
    pub(crate) fn live(&mut self, key: &[u8], now: i64) -> Option<&mut Entry> {
        if self.has_expired(key, now) {
            self.entries.remove(key);
        }
        self.entries.get_mut(key)
    }

    /// Whether a key is stored but expired at `now`, a time in milliseconds.
    pub(crate) fn has_expired(&self, key: &[u8], now: i64) -> bool {
        let entry = self.entries.get(key);
        entry.is_some_and(|entry| entry.expires_at.is_some_and(|at| now > at))
    }

    /// The entry of a key at `now` in milliseconds. It removes nothing.
    #[must_use]
    pub fn peek(&self, key: &[u8], now: i64) -> Option<&Entry> {
        let entry = self.entries.get(key)?;
        entry.expires_at.is_none_or(|at| now <= at).then_some(entry)
    }

    /// The entry stored under a key, expired or not.
    pub(crate) fn stored(&self, key: &[u8]) -> Option<&Entry> {
        self.entries.get(key)
    }

    pub(crate) fn put(&mut self, key: &[u8], entry: Entry) {
        self.entries.insert(key.to_vec(), entry);
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> Option<Entry> {
        self.entries.remove(key)
    }

    /// Removes a key whose last element is gone.
    pub(crate) fn drop_if_empty(&mut self, key: &[u8]) {
        if self
            .entries
            .get(key)
            .is_some_and(|entry| entry.value.is_empty())
        {
            self.entries.remove(key);
        }
    }

    /// Applies a change from another keyspace.
    pub fn apply(&mut self, (key, entry): Change) {
        match entry {
            Some(entry) => self.put(&key, entry),
            None => {
                self.entries.remove(&key);
            }
        }
    }

    /// Every key that exists at `now` in milliseconds, in order.
    pub fn iter(&self, now: i64) -> impl Iterator<Item = (&[u8], &Entry)> {
        self.entries
            .iter()
            .filter(move |(_, entry)| entry.expires_at.is_none_or(|at| now <= at))
            .map(|(key, entry)| (key.as_slice(), entry))
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.entries.clear();
    }
}
