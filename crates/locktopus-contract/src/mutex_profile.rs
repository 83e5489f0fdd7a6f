//! The layout of a mutex on the server, for sharing it with another library.
//!
//! Ready-made profiles are in [`libraries`](self), random values in `value`.

mod libraries;
mod value;

use std::time::Duration;

use crate::name::{LockName, NameError};
use crate::owner::{OwnerId, OwnerIds};

pub use value::ValueEncoding;

/// The layout of a mutex on the server, for sharing it with another library.
///
/// There is a ready-made profile for each library that keeps a lock as one string:
///
/// ```
/// use locktopus::MutexProfile;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let locks = locktopus::connect("memory:").await?;
/// // Excludes `redis.lock("nightly")` of Python's redis-py.
/// let guard = locks.mutex_as("nightly", MutexProfile::redis_py()).acquire().await?;
/// # guard.release().await?;
/// # Ok(()) }
/// ```
///
/// For other libraries, choose the key and the value:
///
/// ```
/// use locktopus_contract::{MutexProfile, ValueEncoding};
/// let profile =
///     MutexProfile::single_key().key_template("redlock:{name}")?.value(ValueEncoding::Uuid);
/// # Ok::<(), locktopus_contract::NameError>(())
/// ```
///
/// # Rules for all profiles
///
/// * On one server (standalone, behind Sentinel, or a slot of a cluster) each side sees the other's
///   locks, in either order. Over several independent servers, put the profile on a `QuorumBackend`
///   of `locktopus-quorum`.
/// * A shared mutex is never handed from one waiter to the next, because the other library's
///   waiters would never see it free. So its waiters have no order.
/// * A single-key profile has no [fencing tokens](crate::FencingToken), and its waiters poll, as
///   the other library's do. [`with_side_keys`](Self::with_side_keys) adds tokens for our own
///   holders, and our own releases then notify our own waiters. Our waiters notice the other
///   library's releases at their next heartbeat.
/// * The other library does not know our fencing, watchdogs or validity. What it does after its own
///   lease expires is up to it.
/// * To release the other library's hold you need its value, and it needs ours: the bytes of
///   `LockGuard::owner_id`.
///
/// # Unsupported libraries
///
/// Locks that are not one string: Medallion's and redis-semaphore's semaphores and reader-writer
/// locks, and node-redlock with several resources in one lock (take those together with
/// `Locktopus::multi` instead). Redisson's locks are not mutexes but have kinds of their own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MutexProfile {
    key: Template,
    value: ValueEncoding,
    /// Text after the random value.
    metadata: String,
    side_keys: bool,
    notification: Option<NotificationTemplate>,
    whole_seconds: bool,
}

/// How a library notifies the waiters of a lock.
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
    /// Waiters block on this list. A release pushes a one onto it, which lasts a second.
    List(String),
    /// A release publishes the lock's key on this plain channel.
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
    /// The key is the lock's name and the value an owner id, with fencing tokens and wake-ups.
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
    /// A single key: no fencing token, no wake-up message. Exactly what `SET key value NX PX`
    /// libraries do. Waiters poll.
    #[must_use]
    pub fn single_key() -> Self {
        Self {
            side_keys: false,
            ..Self::default()
        }
    }

    /// Sets how the lock's name becomes the key: any text that contains `{name}` once.
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

    /// Sets the form of owner values.
    #[must_use]
    pub fn value(mut self, encoding: ValueEncoding) -> Self {
        self.value = encoding;
        self
    }

    /// Adds a fencing token for our own holders, and a channel on which our own releases notify
    /// waiters. In a cluster the name must then fit all these keys, as for every other lock.
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

    /// Whether the lock also has a fencing token and a wake-up channel.
    #[must_use]
    pub fn has_side_keys(&self) -> bool {
        self.side_keys
    }

    /// The key for a name.
    ///
    /// ```
    /// use locktopus_contract::{LockName, MutexProfile, ValueEncoding};
    /// let profile =
    ///     MutexProfile::single_key().key_template("redlock:{name}")?.value(ValueEncoding::Uuid);
    /// assert_eq!(profile.key(&LockName::new("nightly")?), "redlock:nightly");
    /// assert!(!profile.is_native() && !profile.has_side_keys() && !profile.notifies());
    /// // tokens and wake-ups for our own side
    /// assert!(profile.clone().with_side_keys().has_side_keys());
    /// assert!(profile.notification(&LockName::new("nightly")?).is_none());
    /// # Ok::<(), locktopus_contract::NameError>(())
    /// ```
    #[must_use]
    pub fn key(&self, name: &LockName) -> String {
        self.key.fill(name)
    }

    /// How to notify the other library's waiters, if it notifies them at all.
    ///
    /// ```
    /// use locktopus_contract::{LockName, MutexProfile, Notification};
    /// let name = LockName::new("42")?;
    /// let channel = Notification::Channel("orders-channel:orders:42".to_owned());
    /// assert_eq!(MutexProfile::spring("orders")?.notification(&name), Some(channel));
    /// assert_eq!(MutexProfile::redis_py().notification(&name), None); // its waiters poll
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

    /// Whether a release notifies the other library's waiters.
    #[must_use]
    pub fn notifies(&self) -> bool {
        self.notification.is_some()
    }

    /// Whether releases notify our own waiters on a channel.
    pub(crate) fn announces(&self) -> bool {
        self.side_keys || matches!(self.notification, Some(NotificationTemplate::Channel(_)))
    }

    /// The lease as stored: if the other library counts in seconds, rounded up to the next whole
    /// second. The holder trusts only the lease that it asked for.
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
