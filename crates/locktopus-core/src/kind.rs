//! Lock kinds, and how a plain mutex looks to other libraries.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::name::{LockName, NameError};
use crate::owner::{self, OwnerId};

/// What kind of lock a name is used as.
///
/// Two kinds on one name do not exclude each other; a backend that can tell refuses the second one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LockKind {
    /// Exclusive and reentrant by owner handle. On Redis: Redisson's `RLock` layout.
    Reentrant,
    /// Exclusive, not reentrant. On Redis: one plain string, as most other libraries keep it.
    Mutex(Arc<MutexProfile>),
}

impl LockKind {
    /// The word used in errors, metrics and reports: `lock` or `mutex`.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Reentrant => "lock",
            Self::Mutex(_) => "mutex",
        }
    }

    /// A fresh owner id in the form this kind stores.
    #[must_use]
    pub fn new_owner(&self) -> OwnerId {
        match self {
            Self::Reentrant => OwnerId::generate(),
            Self::Mutex(profile) => profile.value.generate(),
        }
    }
}

/// How a mutex is laid out, so that it can be shared with another library.
///
/// ```
/// use locktopus_core::{MutexProfile, ValueEncoding};
/// // What redlock-rb, RedLock.net and others write: `redlock:{resource}` holding a UUID.
/// let profile = MutexProfile::single_key().key_template("redlock:{name}")?.value(ValueEncoding::Uuid);
/// # Ok::<(), locktopus_core::NameError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MutexProfile {
    prefix: String,
    suffix: String,
    value: ValueEncoding,
    side_keys: bool,
}

impl Default for MutexProfile {
    /// The key is the lock's name, the value an owner id; with fencing token and wake-ups.
    fn default() -> Self {
        Self {
            prefix: String::new(),
            suffix: String::new(),
            value: ValueEncoding::Owner,
            side_keys: true,
        }
    }
}

impl MutexProfile {
    /// One key and nothing else: no fencing token, no wake-up message. Exactly what
    /// `SET key value NX PX` libraries do; waiters poll.
    #[must_use]
    pub fn single_key() -> Self {
        Self {
            side_keys: false,
            ..Self::default()
        }
    }

    /// Sets how the key is made from the lock's name: any text with `{name}` in it once.
    ///
    /// # Errors
    ///
    /// [`NameError::Refused`] if `{name}` does not occur exactly once.
    pub fn key_template(mut self, template: &str) -> Result<Self, NameError> {
        let mut parts = template.split("{name}");
        let (Some(prefix), Some(suffix), None) = (parts.next(), parts.next(), parts.next()) else {
            return Err(NameError::Refused {
                name: template.to_owned(),
                backend: "a mutex profile",
                rule: "a key template must contain {name} exactly once, as in \"locks:{name}\""
                    .to_owned(),
            });
        };
        self.prefix = prefix.to_owned();
        self.suffix = suffix.to_owned();
        Ok(self)
    }

    /// Sets how owner values are made.
    #[must_use]
    pub fn value(mut self, encoding: ValueEncoding) -> Self {
        self.value = encoding;
        self
    }

    /// Whether a fencing token and a wake-up channel are kept beside the key.
    #[must_use]
    pub fn has_side_keys(&self) -> bool {
        self.side_keys
    }

    /// The key for a name.
    #[must_use]
    pub fn key(&self, name: &LockName) -> String {
        format!("{}{}{}", self.prefix, name.as_str(), self.suffix)
    }
}

/// How a mutex writes the random value that proves ownership.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ValueEncoding {
    /// An [`OwnerId`] in the standard form. The default.
    #[default]
    Owner,
    /// 16 random bytes as 32 lower-case hex digits (redis-py, node-redlock, redlock-universal).
    Hex32,
    /// 16 random bytes in standard base64 with padding (redsync).
    Base64,
    /// A random version 4 UUID as text (redlock-rb, RedLock.net, pottery).
    Uuid,
    /// 20 random bytes as they are (rslock).
    Raw20,
}

impl ValueEncoding {
    fn generate(self) -> OwnerId {
        match self {
            Self::Owner => OwnerId::generate(),
            Self::Hex32 => OwnerId::from_bytes(hex(&owner::random::<16>()).into_bytes()),
            Self::Base64 => {
                OwnerId::from_bytes(STANDARD.encode(owner::random::<16>()).into_bytes())
            }
            Self::Uuid => OwnerId::from_bytes(uuid_v4(owner::random()).into_bytes()),
            Self::Raw20 => OwnerId::from_bytes(owner::random::<20>()),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn uuid_v4(mut bytes: [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = hex(&bytes);
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

/// One lock: a name and the kind it is used as.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct LockTarget {
    name: LockName,
    kind: LockKind,
}

impl LockTarget {
    /// Pairs a name with a kind.
    #[must_use]
    pub fn new(name: LockName, kind: LockKind) -> Self {
        Self { name, kind }
    }

    /// The lock's name.
    #[must_use]
    pub fn name(&self) -> &LockName {
        &self.name
    }

    /// The lock's kind.
    #[must_use]
    pub fn kind(&self) -> &LockKind {
        &self.kind
    }
}

/// `lock "name"` or `mutex "name"`.
impl fmt::Display for LockTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} \"{}\"", self.kind.as_str(), self.name)
    }
}

impl fmt::Debug for LockTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_lengths_of_their_libraries() {
        for (encoding, length) in [
            (ValueEncoding::Hex32, 32),
            (ValueEncoding::Base64, 24),
            (ValueEncoding::Uuid, 36),
            (ValueEncoding::Raw20, 20),
        ] {
            assert_eq!(encoding.generate().expose().len(), length, "{encoding:?}");
        }
    }

    #[test]
    fn templates_need_the_name_once() {
        let name = LockName::new("n").unwrap();
        let profile = MutexProfile::default().key_template("a:{name}:b").unwrap();
        assert_eq!(profile.key(&name), "a:n:b");
        assert!(MutexProfile::default().key_template("a").is_err());
        assert!(
            MutexProfile::default()
                .key_template("{name}{name}")
                .is_err()
        );
    }
}
