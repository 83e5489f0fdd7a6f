//! The work of the workers: groups of locks of one kind that are used alike.

use std::time::Duration;

use locktopus::LockKind;
use serde::{Deserialize, Serialize};

/// Locks that are used alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockGroup {
    /// Start of the locks' names, unique in the scenario.
    pub name: String,
    /// The kind of lock. For a read-write lock it is the write lock, and each attempt picks a half.
    /// With a quorum it is a mutex.
    #[serde(default = "lock", with = "kind")]
    pub kind: LockKind,
    /// How many locks.
    #[serde(default = "one")]
    pub locks: u32,
    /// Workers that want each lock, spread over the processes.
    #[serde(default = "two")]
    pub workers: u32,
    /// Shortest and longest hold.
    #[serde(with = "bounds")]
    pub hold: (Duration, Duration),
    /// The lease.
    #[serde(with = "humantime_serde")]
    pub lease: Duration,
    /// Whether the lease is renewed.
    #[serde(default)]
    pub renewed: bool,
    /// Share of holders that write although they know that the lock is lost, like a holder that
    /// slept through the loss.
    #[serde(default)]
    pub careless: f64,
    /// Permits of a semaphore.
    #[serde(default = "two")]
    pub permits: u32,
    /// Share of attempts at a read-write lock that want to read.
    #[serde(default = "half")]
    pub readers: f64,
    /// Whether faults that follow a grant follow a grant of these locks.
    #[serde(default)]
    pub target: bool,
    /// Whether time without grants of these locks counts as an outage.
    #[serde(default)]
    pub outage: bool,
}

fn lock() -> LockKind {
    LockKind::Reentrant
}
fn one() -> u32 {
    1
}
fn two() -> u32 {
    2
}
fn half() -> f64 {
    0.5
}

impl LockGroup {
    /// Names of its locks.
    pub fn lock_names(&self, prefix: &str) -> impl Iterator<Item = String> + use<'_> {
        let prefix = prefix.to_owned();
        (0..self.locks).map(move |number| format!("{prefix}:{}-{number}", self.name))
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let problem = if self.name.is_empty() || !self.name.bytes().all(is_plain) {
            "name must be one or more of a-z, 0-9 and -"
        } else if self.locks == 0 || self.workers == 0 || self.permits == 0 {
            "locks, workers and permits must be at least 1"
        } else if self.hold.0 > self.hold.1 {
            "the longest hold is shorter than the shortest"
        } else if self.lease < locktopus::MIN_LEASE {
            "the lease must be at least 20ms"
        } else if !(0.0..=1.0).contains(&self.careless) {
            "careless must be between 0 and 1"
        } else if !(0.0..=1.0).contains(&self.readers) {
            "readers must be between 0 and 1"
        } else {
            return Ok(());
        };
        Err(format!("lock group {:?}: {problem}", self.name))
    }
}

/// Such names need no quoting anywhere, and cannot put the lock into another hash tag.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'
}

/// Kinds, by the names that the library gives them.
mod kind {
    use locktopus::{LockKind, MutexProfile};
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// The kinds that workers can use.
    pub(super) fn known() -> [LockKind; 5] {
        let mutex = LockKind::Mutex(MutexProfile::default().into());
        [
            LockKind::Reentrant,
            mutex,
            LockKind::Fair,
            LockKind::Semaphore,
            LockKind::Write,
        ]
    }

    pub(super) fn serialize<S: Serializer>(kind: &LockKind, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(kind.family())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<LockKind, D::Error> {
        let word = String::deserialize(from)?;
        let found = known().into_iter().find(|kind| kind.family() == word);
        let words = known().map(|kind| kind.family()).join(", ");
        found.ok_or_else(|| D::Error::custom(format!("{word:?} is not one of {words}")))
    }
}

/// A shortest and a longest duration, written as `["1ms", "5ms"]`.
pub(super) mod bounds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub(in super::super) fn serialize<S: Serializer>(
        (shortest, longest): &(Duration, Duration),
        to: S,
    ) -> Result<S::Ok, S::Error> {
        [shortest, longest]
            .map(|bound| humantime::format_duration(*bound).to_string())
            .serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<(Duration, Duration), D::Error> {
        let [shortest, longest] = <[String; 2]>::deserialize(from)?;
        let read = |text: String| humantime::parse_duration(&text).map_err(D::Error::custom);
        Ok((read(shortest)?, read(longest)?))
    }
}

#[cfg(test)]
mod tests {
    use locktopus::LockKind;

    #[test]
    fn every_kind_is_known_or_left_out_for_a_reason() {
        // Every permit is an owner of its own, a spent permit is not held, a latch has no holder.
        let left_out = ["permit_semaphore", "rate_limiter", "latch"];
        for kind in LockKind::all() {
            let known = super::kind::known()
                .iter()
                .any(|known| known.family() == kind.family());
            assert_ne!(known, left_out.contains(&kind.family()), "{kind:?}");
        }
    }
}
