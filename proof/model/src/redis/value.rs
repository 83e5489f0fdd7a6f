//! The values of keys, in the order of a real server's compact encodings.

use std::cmp::Ordering;
use std::collections::{BTreeSet, VecDeque};
use std::fmt;

/// A byte string.
pub(crate) type Bytes = Vec<u8>;

/// A value with its expiry.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its value.
    pub value: Value,
    /// When it expires, in milliseconds on the server's clock. It still exists in that millisecond.
    pub expires_at: Option<i64>,
}

/// The value of a key.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A string.
    Text(Vec<u8>),
    /// A hash, with its fields in the order of insertion.
    Hash(Vec<(Vec<u8>, Vec<u8>)>),
    /// A list.
    List(VecDeque<Vec<u8>>),
    /// A set.
    Set(BTreeSet<Vec<u8>>),
    /// A sorted set, sorted by score and then by member.
    Sorted(Vec<(f64, Vec<u8>)>),
}

impl Value {
    /// The reply of `TYPE`.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Text(_) => "string",
            Self::Hash(_) => "hash",
            Self::List(_) => "list",
            Self::Set(_) => "set",
            Self::Sorted(_) => "zset",
        }
    }

    /// Whether it has no elements left, so the server removes the key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Text(_) => false,
            Self::Hash(fields) => fields.is_empty(),
            Self::List(items) => items.is_empty(),
            Self::Set(members) => members.is_empty(),
            Self::Sorted(members) => members.is_empty(),
        }
    }
}

/// Text for people; invalid UTF-8 is replaced.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        let items: Vec<String> = match self {
            Self::Text(value) => return f.write_str(&text(value)),
            Self::Hash(fields) => fields
                .iter()
                .map(|(name, value)| format!("{}: {}", text(name), text(value)))
                .collect(),
            Self::List(items) => items.iter().map(text).collect(),
            Self::Set(members) => members.iter().map(text).collect(),
            Self::Sorted(members) => members
                .iter()
                .map(|(score, name)| format!("{score} {}", text(name)))
                .collect(),
        };
        write!(f, "[{}]", items.join(", "))
    }
}

/// The index of a member in the order of a sorted set.
pub(crate) fn place(members: &[(f64, Bytes)], score: f64, member: &[u8]) -> usize {
    members.partition_point(|(other, name)| {
        // Scores are never NaN, and the two zeros are equal.
        let order = other.partial_cmp(&score).unwrap_or(Ordering::Equal);
        order.then_with(|| name.as_slice().cmp(member)).is_lt()
    })
}
