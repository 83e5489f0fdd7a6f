//! Lock names.

use std::fmt;
use std::sync::Arc;

/// Longest lock name in bytes, namespace included.
pub const MAX_NAME_BYTES: usize = 1024;

/// A checked lock name: what the backend stores the lock under.
///
/// Cheap to clone. A name is never interpreted as a pattern and never becomes part of a script; a backend
/// may refuse more names than this type does (a Redis Cluster refuses names whose hash tag cannot be made
/// to agree between a lock's keys).
///
/// ```
/// use locktopus_core::LockName;
/// let name = LockName::new("invoice:42")?;
/// assert_eq!(name.as_str(), "invoice:42");
/// assert!(LockName::new("").is_err());
/// # Ok::<(), locktopus_core::NameError>(())
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

    /// Checks a name that is stored behind a prefix. The prefix counts towards the length.
    ///
    /// # Errors
    ///
    /// As [`LockName::new`]; only the part behind the prefix must not be empty.
    pub fn in_namespace(prefix: &str, name: impl AsRef<str>) -> Result<Self, NameError> {
        let name = name.as_ref();
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        let bytes = prefix.len() + name.len();
        if bytes > MAX_NAME_BYTES {
            return Err(NameError::TooLong {
                bytes,
                start: name.chars().take(32).collect(),
            });
        }
        Ok(Self(if prefix.is_empty() {
            name.into()
        } else {
            format!("{prefix}{name}").into()
        }))
    }

    /// The whole name, namespace included.
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

/// Control characters are escaped, so that a name cannot forge a log line.
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

/// Why a lock name was refused. Nothing was written.
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
        /// Length of namespace and name together.
        bytes: usize,
        /// The first 32 characters.
        start: String,
    },
    /// The backend cannot place this name.
    #[error("the lock name {name:?} cannot be used on {backend}: {rule}")]
    Refused {
        /// The name.
        name: String,
        /// Which backend refused it.
        backend: &'static str,
        /// The rule it breaks and how to choose a better name.
        rule: String,
    },
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
