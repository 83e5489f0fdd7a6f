//! Replies of the modelled server.

/// One reply, as in RESP2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// No value.
    Nil,
    /// An integer.
    Int(i64),
    /// A byte string.
    Bulk(Vec<u8>),
    /// A status line.
    Status(String),
    /// An error line: a code in capitals, then a text.
    Error(String),
    /// A list.
    Array(Vec<Self>),
}

impl Reply {
    pub(crate) fn ok() -> Self {
        Self::Status("OK".to_owned())
    }

    pub(crate) fn bulk(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Bulk(bytes.into())
    }

    pub(crate) fn bulk_or_nil(bytes: Option<&Vec<u8>>) -> Self {
        bytes.map_or(Self::Nil, |bytes| Self::Bulk(bytes.clone()))
    }

    pub(crate) fn count(count: usize) -> Self {
        Self::Int(i64::try_from(count).unwrap_or(i64::MAX))
    }

    pub(crate) fn flag(flag: bool) -> Self {
        Self::Int(i64::from(flag))
    }

    /// The number, if it is one.
    #[must_use]
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// The elements of a list; empty for anything else.
    #[must_use]
    pub fn items(&self) -> &[Self] {
        match self {
            Self::Array(items) => items,
            _ => &[],
        }
    }

    /// The bytes of a string; empty for anything else.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Bulk(bytes) => bytes,
            _ => &[],
        }
    }
}

/// Why a command did nothing, or only a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The error reply of a real server.
    Error(String),
    /// The model does not support this. That is a gap in the model, never an error of the script.
    Unsupported(String),
}

impl From<&str> for Refusal {
    fn from(error: &str) -> Self {
        Self::Error(error.to_owned())
    }
}

/// The result of a command.
pub(crate) type Outcome = Result<Reply, Refusal>;

pub(crate) const WRONG_TYPE: &str =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
pub(crate) const SYNTAX: &str = "ERR syntax error";
pub(crate) const NOT_AN_INTEGER: &str = "ERR value is not an integer or out of range";
