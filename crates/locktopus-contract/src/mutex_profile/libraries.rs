//! Ready-made profiles, one for each library that keeps a lock as one string.

use super::{MutexProfile, NotificationTemplate, Template, ValueEncoding, refused};
use crate::name::NameError;

/// How another library keeps a lock as one string.
struct Library {
    /// The part of the key before the lock's name.
    prefix: &'static str,
    value: ValueEncoding,
    whole_seconds: bool,
    /// The prefix of the name of the list that notifies waiters.
    list: Option<&'static str>,
}

/// The plain name, a UUID, milliseconds on the server, and waiters that poll.
const USUAL: Library = Library {
    prefix: "",
    value: ValueEncoding::Uuid,
    whole_seconds: false,
    list: None,
};

/// The same with a prefix that several libraries use.
const PREFIXED: Library = Library {
    prefix: "redlock:",
    ..USUAL
};

/// One row for each library that needs no argument, together with its constructor.
macro_rules! libraries {
    ($($(#[$doc:meta])* $name:ident: $word:literal, $library:expr;)+) => {
        static LIBRARIES: &[(&str, Library)] = &[$(($word, $library)),+];

        /// Profiles for other libraries.
        impl MutexProfile {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name() -> Self {
                    Self::of_library(&$library)
                }
            )+
        }
    };
}

libraries! {
    /// Python's redis-py, `redis.lock(name)`: the plain name, 32 hex digits.
    ///
    /// With `timeout=None` it takes a lock without expiry, which a crashed holder keeps for ever.
    ///
    /// You can also choose a profile by the name of its library:
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
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
    redis_py: "redis-py", Library { value: ValueEncoding::Hex32, ..USUAL };

    /// Go's redsync: the plain name, 16 bytes in base64.
    ///
    /// Its locks are meant for several independent servers. With `SetNXOnExtend`, an extension
    /// takes a lock that no longer exists.
    redsync: "redsync", Library { value: ValueEncoding::Base64, ..USUAL };

    /// node-redlock 5 with one resource: the plain resource name, 32 hex digits.
    ///
    /// A lock of several resources is several keys. Take as many mutexes together with
    /// `Locktopus::multi`.
    node_redlock: "node-redlock", Library { value: ValueEncoding::Hex32, ..USUAL };

    /// Ruby's redlock-rb: the plain resource name, a UUID.
    redlock_rb: "redlock-rb", USUAL;

    /// RedLock.net: `redlock:{resource}` (its default format), a UUID.
    ///
    /// Its extension takes a lock that no longer exists.
    redlock_net: "redlock-net", PREFIXED;

    /// The mutex of .NET's Medallion DistributedLock: the plain key; host, process and 32 hex
    /// digits.
    ///
    /// Its reader-writer lock and semaphore are sets and cannot be shared.
    medallion: "medallion", Library { value: ValueEncoding::Medallion, ..USUAL };

    /// Rust's rslock and redlock: the plain resource name, 20 raw bytes.
    rslock: "rslock", Library { value: ValueEncoding::Raw20, ..USUAL };

    /// Rust's redis-lock: `redlock:{resource}`, a UUID.
    redis_lock: "redis-lock", PREFIXED;

    /// Rust's distributed-lock-redis: `distributed-lock:{name}`, a UUID.
    distributed_lock_redis: "distributed-lock-redis", Library { prefix: "distributed-lock:", ..USUAL };

    /// Go's bsm/redislock with one key: the plain key; 16 bytes in URL-safe base64, **followed
    /// directly by the metadata**, here none.
    ///
    /// When it takes a lock again, it compares only as many bytes as its own token has, otherwise
    /// the whole value. Its fencing counter is separate from ours. A lock of several keys is
    /// several mutexes, taken together with `Locktopus::multi`.
    bsm_redislock: "bsm-redislock", Library { value: ValueEncoding::Base64Url, ..USUAL };

    /// Elixir's redlock (lyokato): the plain resource name, random text.
    lyokato: "lyokato", Library { value: ValueEncoding::Hex32, ..USUAL };

    /// Python's pottery, `Redlock`: `redlock:{key}`, a UUID.
    ///
    /// It extends its own locks at most three times.
    pottery: "pottery", PREFIXED;

    /// The mutex of TypeScript's redis-semaphore: `mutex:{key}`, a UUID.
    ///
    /// Its semaphores are sorted sets that rely on the clients' clocks, so they cannot be shared.
    redis_semaphore: "redis-semaphore", Library { prefix: "mutex:", ..USUAL };

    /// TypeScript's redlock-universal: the plain key, 32 hex digits.
    redlock_universal: "redlock-universal", Library { value: ValueEncoding::Hex32, ..USUAL };

    /// Python's python-redis-lock: `lock:{name}`, 18 bytes in base64. Our releases notify its
    /// blocked waiters at once through the list `lock-signal:{name}`.
    ///
    /// Our own waiters poll, because blocking on a list would take a connection for each of them.
    /// They leave the entry in the list, where it lasts a second, to waiters that block. The
    /// library counts in **whole seconds**, so the server's lease is rounded up to the next one. We
    /// never trust more than the requested lease.
    ///
    /// In a cluster the name needs a hash tag, as in `{invoice}:42`. Without one, the library
    /// itself fails.
    python_redis_lock: "python-redis-lock", Library { prefix: "lock:", value: ValueEncoding::Base64Of18, whole_seconds: true, list: Some("lock-signal:") };

    /// Python's sherlock without a namespace: the plain name, a UUID. It counts in whole seconds
    /// like [`python_redis_lock`](Self::python_redis_lock).
    sherlock: "sherlock", Library { whole_seconds: true, ..USUAL };
}

/// Profiles that need more than the name of a library.
impl MutexProfile {
    /// All names that [`named`](Self::named) takes, as you would write them.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let words = LIBRARIES.iter().map(|(word, _)| *word);
        words.chain([
            "sherlock:NAMESPACE",
            "shedlock:ENVIRONMENT",
            "spring:REGISTRY",
        ])
    }

    /// The profile for a name in the options of a command: a library, followed by a colon and an
    /// argument if the library needs one.
    ///
    /// ```
    /// use locktopus_contract::MutexProfile;
    /// assert_eq!(MutexProfile::named("redis-py")?, MutexProfile::redis_py());
    /// assert_eq!(MutexProfile::named("spring:orders")?, MutexProfile::spring("orders")?);
    /// assert_eq!(MutexProfile::named("shedlock")?, MutexProfile::shedlock("default")?);
    /// assert!(MutexProfile::names().any(|name| name == "redis-py"));
    /// let error = MutexProfile::named("zookeeper").unwrap_err();
    /// assert!(error.to_string().starts_with("there is no such profile; there are redis-py, "));
    /// # Ok::<(), locktopus_contract::NameError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`NameError::NoSuchProfile`] with the valid names, or the error of the library's own
    /// constructor.
    pub fn named(text: &str) -> Result<Self, NameError> {
        match text.split_once(':') {
            Some(("shedlock", environment)) => return Self::shedlock(environment),
            Some(("spring", registry)) => return Self::spring(registry),
            Some(("sherlock", namespace)) => return Self::sherlock_in(namespace),
            None if text == "shedlock" => return Self::shedlock("default"),
            _ => {}
        }
        let found = LIBRARIES.iter().find(|(word, _)| *word == text);
        found
            .map(|(_, library)| Self::of_library(library))
            .ok_or(NameError::NoSuchProfile)
    }

    /// Like [`bsm_redislock`](Self::bsm_redislock), with metadata. The library's `Metadata()`
    /// returns it to code that obtained the value.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
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

    /// Java's ShedLock with its Redis provider: `job-lock:{environment}:{name}` (its default
    /// environment is `default`), `ADDED:<time>@<host>:<UUID>`.
    ///
    /// **Insist on `safeUpdate`** on the Java side. Without it, ShedLock releases with a bare `DEL`
    /// and extends with `SET XX`, even if another process holds the lock. So a job that outlasts
    /// its lock takes ours away. We notice (`LostCause`), but not before the next renewal.
    ///
    /// ```
    /// use locktopus_contract::{LockName, MutexProfile};
    /// let profile = MutexProfile::shedlock("production")?;
    /// assert_eq!(profile.key(&LockName::new("nightly")?), "job-lock:production:nightly");
    /// # Ok::<(), locktopus_contract::NameError>(())
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

    /// Spring Integration's `RedisLockRegistry`: `{registry key}:{path}`, a UUID. In its pub/sub
    /// mode, both sides notify each other on the plain channel `{registry key}-channel:{registry
    /// key}:{path}`.
    ///
    /// Spring uses one UUID for each **registry** and tells its threads apart only inside the JVM.
    /// Each of our acquisitions has a UUID of its own, so to Spring it looks like a registry of its
    /// own. A registry in spin mode (its default) works too, but sends no notifications. Our
    /// waiters notice its releases at their heartbeat (`WaitStrategy::Notify`), by default every
    /// second.
    ///
    /// ```
    /// use locktopus_contract::{LockName, MutexProfile};
    /// let profile = MutexProfile::spring("registry")?;
    /// assert_eq!(profile.key(&LockName::new("nightly")?), "registry:nightly");
    /// # Ok::<(), locktopus_contract::NameError>(())
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

    /// Python's sherlock with a namespace: `{namespace}_{name}`, otherwise like
    /// [`sherlock`](Self::sherlock).
    ///
    /// ```
    /// use locktopus_contract::{LockName, MutexProfile};
    /// let profile = MutexProfile::sherlock_in("shop")?;
    /// assert_eq!(profile.key(&LockName::new("nightly")?), "shop_nightly");
    /// # Ok::<(), locktopus_contract::NameError>(())
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

    fn of_library(library: &Library) -> Self {
        let list = library.list.map(Template::after);
        Self {
            notification: list.map(NotificationTemplate::List),
            whole_seconds: library.whole_seconds,
            ..Self::prefixed(library.prefix, library.value)
        }
    }

    fn prefixed(prefix: impl Into<String>, value: ValueEncoding) -> Self {
        Self {
            key: Template::after(prefix),
            ..Self::single_key().value(value)
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
    use crate::mutex_profile::Notification;
    use crate::name::LockName;

    #[test]
    fn keys_are_those_of_the_libraries() {
        let name = LockName::new("job").unwrap();
        for (word, key) in [
            ("redis-py", "job"),
            ("redlock-net", "redlock:job"),
            ("distributed-lock-redis", "distributed-lock:job"),
            ("redis-semaphore", "mutex:job"),
            ("shedlock", "job-lock:default:job"),
            ("spring:orders", "orders:job"),
            ("python-redis-lock", "lock:job"),
            ("sherlock:app", "app_job"),
        ] {
            let profile = MutexProfile::named(word).unwrap();
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
        for empty in ["spring:", "shedlock:", "sherlock:"] {
            let error = MutexProfile::named(empty).unwrap_err();
            assert!(error.to_string().contains("must not be empty"), "{error}");
        }
    }
}
