//! Ready-made profiles, one for each library that keeps a lock as one string.

use super::{MutexProfile, NotificationTemplate, Template, ValueEncoding, refused};
use crate::contract::name::NameError;

/// Profiles for other libraries. Leases are milliseconds on the server and the other library's waiters poll, unless it
/// says otherwise.
impl MutexProfile {
    /// Python's redis-py, `redis.lock(name)`: the name as it is, 32 hex digits.
    ///
    /// With `timeout=None` it takes a lock without expiry, which a crashed holder keeps for ever.
    ///
    /// A profile is chosen by the library that has the lock too:
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// use locktopus::MutexProfile;
    /// for profile in [
    ///     MutexProfile::redis_py(),
    ///     MutexProfile::redsync(),
    ///     MutexProfile::node_redlock(),
    ///     MutexProfile::redlock_rb(),
    ///     MutexProfile::redlock_net(),
    ///     MutexProfile::medallion(),
    ///     MutexProfile::rslock(),
    ///     MutexProfile::redis_lock(),
    ///     MutexProfile::distributed_lock_redis(),
    ///     MutexProfile::bsm_redislock(),
    ///     MutexProfile::lyokato(),
    ///     MutexProfile::pottery(),
    ///     MutexProfile::redis_semaphore(),
    ///     MutexProfile::redlock_universal(),
    ///     MutexProfile::python_redis_lock(),
    ///     MutexProfile::sherlock(),
    /// ] {
    ///     assert!(!profile.is_native()); // shared with another library
    ///     locks.mutex_as("nightly", profile).acquire().await?.release().await?;
    /// }
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn redis_py() -> Self {
        Self::plain(ValueEncoding::Hex32)
    }

    /// Go's redsync: the name as it is, 16 bytes in base64.
    ///
    /// It means its locks for several independent servers; with `SetNXOnExtend` an extension takes a lock that is gone.
    #[must_use]
    pub fn redsync() -> Self {
        Self::plain(ValueEncoding::Base64)
    }

    /// node-redlock 5 with one resource: the resource as it is, 32 hex digits.
    ///
    /// A lock of several resources is several keys: take as many mutexes [together](crate::Locktopus::multi).
    #[must_use]
    pub fn node_redlock() -> Self {
        Self::plain(ValueEncoding::Hex32)
    }

    /// Ruby's redlock-rb: the resource as it is, a UUID.
    #[must_use]
    pub fn redlock_rb() -> Self {
        Self::plain(ValueEncoding::Uuid)
    }

    /// RedLock.net: `redlock:{resource}` (its default format), a UUID.
    ///
    /// Its extension takes a lock that is gone.
    #[must_use]
    pub fn redlock_net() -> Self {
        Self::prefixed("redlock:", ValueEncoding::Uuid)
    }

    /// The mutex of .NET's Medallion DistributedLock: the key as it is, host, process and 32 hex digits.
    ///
    /// Its reader-writer lock and semaphore are sets and cannot be shared.
    #[must_use]
    pub fn medallion() -> Self {
        Self::plain(ValueEncoding::Medallion)
    }

    /// Rust's rslock and redlock: the resource as it is, 20 raw bytes.
    #[must_use]
    pub fn rslock() -> Self {
        Self::plain(ValueEncoding::Raw20)
    }

    /// Rust's redis-lock: `redlock:{resource}`, a UUID.
    #[must_use]
    pub fn redis_lock() -> Self {
        Self::redlock_net()
    }

    /// Rust's distributed-lock-redis: `distributed-lock:{name}`, a UUID.
    #[must_use]
    pub fn distributed_lock_redis() -> Self {
        Self::prefixed("distributed-lock:", ValueEncoding::Uuid)
    }

    /// Go's bsm/redislock with one key: the key as it is; 16 bytes in URL-safe base64, **followed directly by the
    /// metadata**, here none.
    ///
    /// It compares only as many bytes as its own token is long when it takes a lock again, the whole value otherwise.
    /// Its fencing counter is not ours; a lock of several keys is several mutexes, taken
    /// [together](crate::Locktopus::multi).
    #[must_use]
    pub fn bsm_redislock() -> Self {
        Self::plain(ValueEncoding::Base64Url)
    }

    /// As [`bsm_redislock`](Self::bsm_redislock), with metadata that its `Metadata()` returns to whoever was given the
    /// value.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// use locktopus::MutexProfile;
    /// let profile = MutexProfile::bsm_redislock_with_metadata("billing");
    /// locks.mutex_as("nightly", profile).acquire().await?.release().await?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn bsm_redislock_with_metadata(metadata: impl Into<String>) -> Self {
        Self {
            metadata: metadata.into(),
            ..Self::bsm_redislock()
        }
    }

    /// Elixir's redlock (lyokato): the resource as it is, random text.
    #[must_use]
    pub fn lyokato() -> Self {
        Self::plain(ValueEncoding::Hex32)
    }

    /// Python's pottery, `Redlock`: `redlock:{key}`, a UUID.
    ///
    /// It extends its own locks three times at most.
    #[must_use]
    pub fn pottery() -> Self {
        Self::prefixed("redlock:", ValueEncoding::Uuid)
    }

    /// The mutex of TypeScript's redis-semaphore: `mutex:{key}`, a UUID.
    ///
    /// Its semaphores are sorted sets by the clients' clocks and cannot be shared.
    #[must_use]
    pub fn redis_semaphore() -> Self {
        Self::prefixed("mutex:", ValueEncoding::Uuid)
    }

    /// TypeScript's redlock-universal: the key as it is, 32 hex digits.
    #[must_use]
    pub fn redlock_universal() -> Self {
        Self::plain(ValueEncoding::Hex32)
    }

    /// Java's ShedLock with its Redis provider: `job-lock:{environment}:{name}` (its default environment is `default`),
    /// `ADDED:<time>@<host>:<UUID>`.
    ///
    /// **Insist on `safeUpdate`** on the Java side. Without it, ShedLock releases by a bare `DEL` and prolongs by `SET
    /// XX`, whoever holds the lock: a job that took longer than its lock takes ours away. We notice
    /// ([`LostCause`](crate::LostCause)), but not before the next renewal.
    ///
    /// ```
    /// use locktopus_core::{LockName, MutexProfile};
    /// let profile = MutexProfile::shedlock("production")?;
    /// assert_eq!(profile.key(&LockName::new("nightly")?), "job-lock:production:nightly");
    /// # Ok::<(), locktopus_core::NameError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`NameError::Refused`] if the environment is empty.
    pub fn shedlock(environment: &str) -> Result<Self, NameError> {
        not_empty(environment, "the environment of ShedLock must not be empty")?;
        let prefix = format!("job-lock:{environment}:");
        Ok(Self::prefixed(prefix, ValueEncoding::ShedLock))
    }

    /// Spring Integration's `RedisLockRegistry`: `{registry key}:{path}`, a UUID. Notifies and is notified of its
    /// pub/sub mode, the plain channel `{registry key}-channel:{registry key}:{path}`.
    ///
    /// Spring's value is one UUID for each **registry**: its threads are told apart only inside the JVM. Each acquisition of
    /// ours has a UUID of its own, so to Spring it is a registry of its own. A registry in spin mode (its default) takes
    /// part too, but notifies nobody: our waiters notice its releases with their
    /// [heartbeat](crate::WaitStrategy::Notify), of a second by default.
    ///
    /// ```
    /// use locktopus_core::{LockName, MutexProfile};
    /// let profile = MutexProfile::spring("registry")?;
    /// assert_eq!(profile.key(&LockName::new("nightly")?), "registry:nightly");
    /// # Ok::<(), locktopus_core::NameError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`NameError::Refused`] if the registry key is empty.
    pub fn spring(registry_key: &str) -> Result<Self, NameError> {
        not_empty(registry_key, "the registry key of Spring must not be empty")?;
        let prefix = format!("{registry_key}:");
        let channel = Template::after(format!("{registry_key}-channel:{prefix}"));
        Ok(Self {
            notification: Some(NotificationTemplate::Channel(channel)),
            ..Self::prefixed(prefix, ValueEncoding::Uuid)
        })
    }

    /// Python's python-redis-lock: `lock:{name}`, 18 bytes in base64. Notifies by the list `lock-signal:{name}`, so
    /// that its blocked waiters wake at once.
    ///
    /// Our own waiters poll: blocking on a list would take a connection each. They leave what is in the list to those who
    /// block, where it lasts for a second. The library counts in **whole seconds**, so a lease is rounded up to the next
    /// one on the server; we never believe in more than was asked for.
    ///
    /// In a cluster the name needs a hash tag, as in `{invoice}:42`, or the library itself fails.
    #[must_use]
    pub fn python_redis_lock() -> Self {
        Self {
            notification: Some(NotificationTemplate::List(Template::after("lock-signal:"))),
            whole_seconds: true,
            ..Self::prefixed("lock:", ValueEncoding::Base64Of18)
        }
    }

    /// Python's sherlock without a namespace: the name as it is, a UUID. Counts in whole seconds, see
    /// [`python_redis_lock`](Self::python_redis_lock).
    #[must_use]
    pub fn sherlock() -> Self {
        Self {
            whole_seconds: true,
            ..Self::plain(ValueEncoding::Uuid)
        }
    }

    /// Python's sherlock with a namespace: `{namespace}_{name}`, else as [`sherlock`](Self::sherlock).
    ///
    /// ```
    /// use locktopus_core::{LockName, MutexProfile};
    /// let profile = MutexProfile::sherlock_in("shop")?;
    /// assert_eq!(profile.key(&LockName::new("nightly")?), "shop_nightly");
    /// # Ok::<(), locktopus_core::NameError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`NameError::Refused`] if the namespace is empty.
    pub fn sherlock_in(namespace: &str) -> Result<Self, NameError> {
        not_empty(namespace, "the namespace of sherlock must not be empty")?;
        Ok(Self {
            key: Template::after(format!("{namespace}_")),
            ..Self::sherlock()
        })
    }

    fn plain(value: ValueEncoding) -> Self {
        Self::single_key().value(value)
    }

    fn prefixed(prefix: impl Into<String>, value: ValueEncoding) -> Self {
        Self {
            key: Template::after(prefix),
            ..Self::plain(value)
        }
    }
}

fn not_empty(text: &str, rule: &str) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(refused(text, rule));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::contract::mutex_profile::Notification;
    use crate::contract::name::LockName;

    #[test]
    fn keys_are_those_of_the_libraries() {
        let name = LockName::new("job").unwrap();
        for (profile, key) in [
            (MutexProfile::redis_py(), "job"),
            (MutexProfile::redlock_net(), "redlock:job"),
            (
                MutexProfile::distributed_lock_redis(),
                "distributed-lock:job",
            ),
            (MutexProfile::redis_semaphore(), "mutex:job"),
            (
                MutexProfile::shedlock("default").unwrap(),
                "job-lock:default:job",
            ),
            (MutexProfile::spring("orders").unwrap(), "orders:job"),
            (MutexProfile::python_redis_lock(), "lock:job"),
            (MutexProfile::sherlock_in("app").unwrap(), "app_job"),
        ] {
            assert_eq!(profile.key(&name), key);
            assert!(!profile.is_native() && !profile.has_side_keys());
        }
    }

    #[test]
    fn notifications_are_those_of_the_libraries() {
        let name = LockName::new("job").unwrap();
        let spring = MutexProfile::spring("{orders}").unwrap();
        let channel = "{orders}-channel:{orders}:job".to_owned();
        assert_eq!(
            spring.notification(&name),
            Some(Notification::Channel(channel))
        );
        assert!(spring.announces());
        let python = MutexProfile::python_redis_lock();
        let list = "lock-signal:job".to_owned();
        assert_eq!(python.notification(&name), Some(Notification::List(list)));
        assert!(!python.announces(), "its waiters poll");
        assert_eq!(MutexProfile::redis_py().notification(&name), None);
    }

    #[test]
    fn seconds_are_rounded_up() {
        let python = MutexProfile::python_redis_lock();
        for (asked, stored) in [(1, 1_000), (999, 1_000), (1_000, 1_000), (1_001, 2_000)] {
            let (asked, stored) = (Duration::from_millis(asked), Duration::from_millis(stored));
            assert_eq!(python.stored_lease(asked), stored);
            assert_eq!(MutexProfile::redis_py().stored_lease(asked), asked);
        }
    }

    #[test]
    fn nothing_is_refused_with_a_word_why() {
        for error in [
            MutexProfile::spring("").unwrap_err(),
            MutexProfile::shedlock("").unwrap_err(),
            MutexProfile::sherlock_in("").unwrap_err(),
        ] {
            assert!(error.to_string().contains("must not be empty"), "{error}");
        }
    }
}
