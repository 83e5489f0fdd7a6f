//! Lock names and their encoding as text.

mod encoding;
mod escape;
mod raw;
mod reserved;

use std::fmt;
use std::sync::Arc;

pub use encoding::NameEncoding;
pub use raw::RawName;
pub(crate) use reserved::check_apart;

use crate::kind::LockKind;
use crate::mutex_profile::MutexProfile;

/// The longest lock name in bytes, as the backend stores it, including the namespace.
pub const MAX_NAME_BYTES: usize = 1024;

/// A checked lock name. The backend stores the lock under it.
///
/// Cheap to clone. A name is never interpreted as a pattern and never becomes part of a script. A
/// backend may refuse more names than this type does. All backends refuse names with a second
/// meaning ([`LockTarget::check_name`](crate::LockTarget::check_name)), and a Redis Cluster refuses
/// names with a hash tag that would put a lock's keys into different slots. The braces of
/// [encoded](Self::encode) names are never a reason to refuse them.
///
/// ```
/// use locktopus_contract::LockName;
/// let name = LockName::new("invoice:42")?;
/// assert_eq!(name.as_str(), "invoice:42");
/// assert!(LockName::new("").is_err());
/// # Ok::<(), locktopus_contract::NameError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockName(Arc<str>);

impl LockName {
    /// Checks a name.
    ///
    /// # Errors
    ///
    /// [`NameError::Empty`] and [`NameError::TooLong`] (over [`MAX_NAME_BYTES`]).
    pub fn new(name: impl AsRef<str>) -> Result<Self, NameError> {
        Self::in_namespace("", name)
    }

    /// Checks a name with a prefix. The prefix counts towards the length.
    ///
    /// ```
    /// use locktopus_contract::LockName;
    /// assert_eq!(LockName::in_namespace("shop:", "invoice:42")?.as_str(), "shop:invoice:42");
    /// # Ok::<(), locktopus_contract::NameError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The same as for [`LockName::new`]. Only the part after the prefix must not be empty.
    pub fn in_namespace(prefix: &str, name: impl AsRef<str>) -> Result<Self, NameError> {
        let name = name.as_ref();
        check(prefix, name)?;
        Ok(Self(if prefix.is_empty() {
            name.into()
        } else {
            format!("{prefix}{name}").into()
        }))
    }

    /// Like [`new`](Self::new), without a copy.
    fn of_text(name: Arc<str>) -> Result<Self, NameError> {
        check("", &name)?;
        Ok(Self(name))
    }

    /// Makes a name from any bytes: [`NameEncoding::Escaped`] without a namespace.
    ///
    /// ```
    /// use locktopus_contract::LockName;
    /// let name = LockName::encode(b"cart {7}\xff")?;
    /// assert_eq!(name.as_str(), "cart%20%7B7%7D%FF");
    /// assert_eq!(name.decode()?, b"cart {7}\xff");
    /// # Ok::<(), locktopus_contract::NameError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`NameError::Empty`], and [`NameError::EncodedTooLong`]: the limit applies to the encoded
    /// name.
    pub fn encode(bytes: impl AsRef<[u8]>) -> Result<Self, NameError> {
        NameEncoding::Escaped.encode("", bytes)
    }

    /// The bytes from which [`encode`](Self::encode) made this name.
    ///
    /// # Errors
    ///
    /// [`NameError::NotEncoded`] if it was made in another way.
    pub fn decode(&self) -> Result<Vec<u8>, NameError> {
        NameEncoding::Escaped.decode("", self)
    }

    /// The whole name, including the namespace.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// Escapes control characters, so that a name cannot forge a log line.
impl fmt::Display for LockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            if c.is_control() {
                write!(f, "{}", c.escape_debug())?
            } else {
                fmt::Write::write_char(f, c)?
            }
        }
        Ok(())
    }
}

/// The reason why a lock name was refused. Nothing was written.
///
/// ```
/// use locktopus_contract::{LockName, MAX_NAME_BYTES, NameError};
/// assert_eq!(LockName::new(""), Err(NameError::Empty));
/// match LockName::new(&"x".repeat(MAX_NAME_BYTES + 1)) {
///     Err(NameError::TooLong { bytes, .. }) => assert_eq!(bytes, MAX_NAME_BYTES + 1),
///     other => panic!("{other:?}"),
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The name is the empty string.
    #[error("a lock name must not be empty")]
    Empty,
    /// The name is longer than [`MAX_NAME_BYTES`].
    #[error(
        "the lock name starting {start:?} has {bytes} bytes with its namespace; at most {MAX_NAME_BYTES} are allowed"
    )]
    TooLong {
        /// Length of namespace and name together, in bytes.
        bytes: usize,
        /// The first 32 characters.
        start: String,
    },
    /// The name is longer than [`MAX_NAME_BYTES`] after encoding.
    #[error(
        "the lock name starting {start:?} has {raw_bytes} bytes, which are {bytes} when encoded and put behind its \
         namespace; at most {MAX_NAME_BYTES} are allowed. Shorten it, or use a hash of it"
    )]
    EncodedTooLong {
        /// Length of namespace and encoded name together, in bytes.
        bytes: usize,
        /// Length of the original name, in bytes.
        raw_bytes: usize,
        /// The first 32 characters.
        start: String,
    },
    /// The name is not UTF-8 text, and this program stores names unencoded.
    #[error(
        "the lock name starting {start:?} is not UTF-8 from byte {at} on; names of any bytes need NameEncoding::Escaped"
    )]
    NotText {
        /// The first 32 characters, with `\u{fffd}` in place of invalid bytes.
        start: String,
        /// The first byte that belongs to no character, counted from 0.
        at: usize,
    },
    /// The name cannot be decoded, because this encoding did not make it.
    #[error("the lock name {name:?} cannot be decoded: {rule}")]
    NotEncoded {
        /// The name.
        name: String,
        /// The part that this encoding never produces.
        rule: String,
    },
    /// The backend cannot use this name.
    #[error("the lock name {name:?} cannot be used on {backend}: {rule}")]
    Refused {
        /// The name.
        name: String,
        /// Which backend refused it.
        backend: &'static str,
        /// The broken rule, and how to choose a better name.
        rule: String,
    },
    /// There is no mutex profile of this name. The error does not show the name, because it may
    /// contain a password.
    #[error("there is no such profile; there are {}", MutexProfile::names().collect::<Vec<_>>().join(", "))]
    NoSuchProfile,
    /// The name would be confused with another name, or with a side key of another lock.
    #[error("the lock name {name:?} cannot be used: {rule}")]
    Ambiguous {
        /// The name, as it would be stored.
        name: String,
        /// The other meaning, and what to use instead.
        rule: String,
    },
    /// The backend has no locks of this kind, under any name.
    #[error("{} {name:?} is not possible on {backend}: {reason}", kind.as_str())]
    UnsupportedKind {
        /// The name.
        name: String,
        /// The requested kind.
        kind: LockKind,
        /// Which backend refused it.
        backend: &'static str,
        /// Why, and what to use instead.
        reason: &'static str,
    },
}

/// Checks the length of a name together with its prefix.
fn check(prefix: &str, name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    let bytes = prefix.len() + name.len();
    if bytes > MAX_NAME_BYTES {
        return Err(NameError::TooLong {
            bytes,
            start: start_of(name.as_bytes()),
        });
    }
    Ok(())
}

/// The first 32 characters, for errors.
fn start_of(name: &[u8]) -> String {
    // No character has more than four bytes.
    let start = &name[..name.len().min(4 * 32)];
    String::from_utf8_lossy(start).chars().take(32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_counts_the_namespace() {
        assert!(LockName::in_namespace("ns:", "a".repeat(MAX_NAME_BYTES - 3)).is_ok());
        let err = LockName::in_namespace("ns:", "a".repeat(MAX_NAME_BYTES - 2)).unwrap_err();
        assert!(matches!(err, NameError::TooLong { bytes, .. } if bytes == MAX_NAME_BYTES + 1));
    }

    #[test]
    fn display_cannot_forge_log_lines() {
        let name = LockName::new("a\nERROR forged").unwrap();
        assert_eq!(name.to_string(), "a\\nERROR forged");
    }
}
