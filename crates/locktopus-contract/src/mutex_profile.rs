//! How a mutex looks on the server, so that it can be shared with another library.
//!
//! Ready-made profiles are in [`libraries`](self), random values in `value`.

mod libraries;
mod value;

use std::time::Duration;

use crate::name::{LockName, NameError};
use crate::owner::{OwnerId, OwnerIds};

pub use value::ValueEncoding;

/// How a mutex is laid out, so that it can be shared with another library.
///
/// There is a ready-made profile for each library that keeps a lock as one string:
///
/// ```
/// use locktopus::MutexProfile;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let locks = locktopus::connect("memory:").await?;
/// // Excludes `redis.lock("nightly")` of Python's redis-py.
/// let guard = locks.mutex_as("nightly", MutexProfile::redis_py()).acquire().await?;
/// # guard.release().await?;
/// # Ok(()) }
/// ```
///
/// For others, key and value can be chosen:
///
/// ```
/// use locktopus_contract::{MutexProfile, ValueEncoding};
/// let profile = MutexProfile::single_key().key_template("redlock:{name}")?.value(ValueEncoding::Uuid);
/// # Ok::<(), locktopus_contract::NameError>(())
/// ```
///
/// # What holds for all of them
///
/// * On one server (standalone, behind Sentinel, or a slot of a cluster) each side sees the other's
///   locks, whoever comes first. Over several independent servers, put the profile on a
///   `QuorumBackend` of `locktopus-quorum`.
/// * A mutex that is shared is never handed from one waiter to the next: the other library's would
///   never see it free. So there is no order among waiters.
/// * A profile of a single key has no [fencing tokens](crate::FencingToken), and its waiters poll,
///   as the other library's do. [`with_side_keys`](Self::with_side_keys) adds tokens for our own
///   holders and wakes our own waiters when one of ours releases; the other library's releases are
///   then noticed with the heartbeat.
/// * The other library does not know fencing, watchdogs or validity: what it does when its own
///   lease has run out is its own affair.
/// * To release for a holder of the other library one needs its value, and it ours: the bytes of
///   `LockGuard::owner`.
///
/// # What cannot be served
///
/// Locks that are not one string: Medallion's and redis-semaphore's semaphores and reader-writer
/// locks, and node-redlock with several resources in one lock (take them together with
/// `Locktopus::multi` instead). Redisson's are not mutexes but locks of their own kinds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MutexProfile {
    key: Template,
    value: ValueEncoding,
    /// What stands behind the random value.
    metadata: String,
    side_keys: bool,
    notification: Option<NotificationTemplate>,
    whole_seconds: bool,
}

/// How a library wakes those who wait for a lock.
///
/// ```
/// use locktopus_contract::{LockName, MutexProfile, Notification};
/// let name = LockName::new("nightly")?;
/// let list = Notification::List("lock-signal:nightly".to_owned());
/// assert_eq!(MutexProfile::python_redis_lock().notification(&name), Some(list));
/// # Ok::<(), locktopus_contract::NameError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Notification {
    /// Waiters block on this list, into which a release puts a one for a second.
    List(String),
    /// A release says the lock's key on this plain channel.
    Channel(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum NotificationTemplate {
    List(Template),
    Channel(Template),
}

/// Text around a lock's name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Template {
    before: String,
    after: String,
}

impl Template {
    fn after(before: impl Into<String>) -> Self {
        Self {
            before: before.into(),
            after: String::new(),
        }
    }

    fn fill(&self, name: &LockName) -> String {
        format!("{}{}{}", self.before, name.as_str(), self.after)
    }
}

impl Default for MutexProfile {
    /// The key is the lock's name, the value an owner id; with fencing token and wake-ups.
    fn default() -> Self {
        Self {
            key: Template::default(),
            value: ValueEncoding::Owner,
            metadata: String::new(),
            side_keys: true,
            notification: None,
            whole_seconds: false,
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
        let (Some(before), Some(after), None) = (parts.next(), parts.next(), parts.next()) else {
            return Err(refused(
                template,
                "a key template must contain {name} exactly once, as in \"locks:{name}\"",
            ));
        };
        self.key = Template {
            before: before.to_owned(),
            after: after.to_owned(),
        };
        Ok(self)
    }

    /// Sets how owner values are made.
    #[must_use]
    pub fn value(mut self, encoding: ValueEncoding) -> Self {
        self.value = encoding;
        self
    }

    /// Keeps a fencing token for our own holders beside the key, and a channel on which our own
    /// releases are announced. In a cluster the name must allow for both, as every lock's.
    #[must_use]
    pub fn with_side_keys(mut self) -> Self {
        self.side_keys = true;
        self
    }

    /// Whether only this library uses the lock: the default profile.
    #[must_use]
    pub fn is_native(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a fencing token and a wake-up channel are kept beside the key.
    #[must_use]
    pub fn has_side_keys(&self) -> bool {
        self.side_keys
    }

    /// The key for a name.
    ///
    /// ```
    /// use locktopus_contract::{LockName, MutexProfile, ValueEncoding};
    /// let profile = MutexProfile::single_key().key_template("redlock:{name}")?.value(ValueEncoding::Uuid);
    /// assert_eq!(profile.key(&LockName::new("nightly")?), "redlock:nightly");
    /// assert!(!profile.is_native() && !profile.has_side_keys() && !profile.notifies());
    /// assert!(profile.clone().with_side_keys().has_side_keys()); // tokens and wake-ups among our own
    /// assert!(profile.notification(&LockName::new("nightly")?).is_none());
    /// # Ok::<(), locktopus_contract::NameError>(())
    /// ```
    #[must_use]
    pub fn key(&self, name: &LockName) -> String {
        self.key.fill(name)
    }

    /// How to wake the other library's waiters, if it wakes them.
    ///
    /// ```
    /// use locktopus_contract::{LockName, MutexProfile, Notification};
    /// let name = LockName::new("42")?;
    /// let channel = Notification::Channel("orders-channel:orders:42".to_owned());
    /// assert_eq!(MutexProfile::spring("orders")?.notification(&name), Some(channel));
    /// assert_eq!(MutexProfile::redis_py().notification(&name), None); // its waiters ask
    /// # Ok::<(), locktopus_contract::NameError>(())
    /// ```
    #[must_use]
    pub fn notification(&self, name: &LockName) -> Option<Notification> {
        self.notification
            .as_ref()
            .map(|notification| match notification {
                NotificationTemplate::List(list) => Notification::List(list.fill(name)),
                NotificationTemplate::Channel(channel) => Notification::Channel(channel.fill(name)),
            })
    }

    /// Whether a release notifies those who wait with the other library.
    #[must_use]
    pub fn notifies(&self) -> bool {
        self.notification.is_some()
    }

    /// Whether releases are announced on a channel that our waiters can listen to.
    pub(crate) fn announces(&self) -> bool {
        self.side_keys || matches!(self.notification, Some(NotificationTemplate::Channel(_)))
    }

    /// The lease as it is written: where the other library counts in seconds, the next whole one.
    /// The holder believes in no more than it asked for.
    ///
    /// ```
    /// use std::time::Duration;
    /// use locktopus_contract::MutexProfile;
    /// let lease = Duration::from_millis(1_500);
    /// assert_eq!(MutexProfile::python_redis_lock().stored_lease(lease), Duration::from_secs(2));
    /// assert_eq!(MutexProfile::redis_py().stored_lease(lease), lease); // milliseconds
    /// ```
    #[must_use]
    pub fn stored_lease(&self, lease: Duration) -> Duration {
        if self.whole_seconds && lease.subsec_nanos() > 0 {
            Duration::from_secs(lease.as_secs() + 1)
        } else {
            lease
        }
    }

    pub(crate) fn owner_from(&self, ids: &OwnerIds) -> OwnerId {
        self.value.generate(ids, &self.metadata)
    }
}

fn refused(name: &str, rule: &str) -> NameError {
    NameError::Refused {
        name: name.to_owned(),
        backend: "a mutex profile",
        rule: rule.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
