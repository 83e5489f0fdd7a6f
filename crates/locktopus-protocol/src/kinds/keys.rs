//! The names of a lock on the server: keys, channels, slots.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use locktopus_contract::{
    InstanceId, LockKind, LockTarget, NameError, Notification, OwnerId, lock,
};

use super::{Names, RedisKind, of};
use crate::layout::slot::key_slot;
use crate::layout::tag::{prefix_name, tag};

/// The names a lock uses on Redis.
///
/// The main key is the lock's name itself. Everything beside it is named as in Redisson: a prefix,
/// then the name as a hash tag, so that a cluster keeps all of it in one slot.
#[derive(Debug)]
pub struct Keys {
    /// The keys that scripts receive as `KEYS`, in this order: the lock itself; its last fencing
    /// token; its queue and its waiters; further keys of its kind. A mutex shared with other
    /// libraries has only the first two or the first. A latch has the first and those of its kind.
    pub names: Vec<String>,
    /// The channel that announces releases to everyone; `None` for a single-key mutex.
    pub channel: Option<Bytes>,
    /// How to wake another library's waiters, if a mutex is shared with one that wakes them.
    pub notification: Option<Notification>,
    /// The prefix of the channel that brings a client its grants; the client appends its own part.
    /// `None` if the kind has no hand-off.
    pub inbox: Option<String>,
    /// A channel whose subscriber count shows how many subscribers of [`channel`](Self::channel)
    /// can receive grants. `None` if the kind has no hand-off.
    pub native: Option<Bytes>,
    slot: u16,
    has_token: bool,
    /// Whether the last attempt of this client had to wait.
    waited: AtomicBool,
}

/// The number of keys for the lock, its token, its queue and its waiters.
const QUEUED: usize = 4;
/// No kind has more keys.
const MOST: usize = 8;

/// The keys of a lock as scripts receive them, without an allocation.
#[derive(Debug)]
pub(crate) struct Named<'a> {
    names: [&'a [u8]; MOST],
    count: usize,
}

impl<'a> Deref for Named<'a> {
    type Target = [&'a [u8]];

    fn deref(&self) -> &Self::Target {
        &self.names[..self.count]
    }
}

impl Keys {
    /// The names for a target.
    #[must_use]
    pub fn of(target: &LockTarget) -> Self {
        let kind = target.kind();
        let main = target.key().into_owned();
        let tagged = tag(&main);
        let side = |prefix: &str| format!("{prefix}:{tagged}");
        // The backend's `check` refuses a kind without a row before its keys matter.
        let row = of(kind);
        let notification = kind
            .profile()
            .and_then(|profile| profile.notification(target.name()));
        let channel = match (&notification, row) {
            (Some(Notification::Channel(theirs)), _) => Some(theirs.clone()),
            (_, Some(row)) if kind.profile().is_none_or(|it| it.has_side_keys()) => {
                Some((row.channel)(&main))
            }
            _ => None,
        };
        let inbox = kind
            .hands_off()
            .then(|| format!("{}:{}:", side("locktopus_inbox"), kind.family()));
        let native = kind.hands_off().then(|| side("locktopus_native").into());
        let mut names = Vec::with_capacity(QUEUED + 1);
        if kind.has_tokens() || kind.hands_off() {
            names.push(side("redisson_lock_token"));
        }
        if kind.hands_off() {
            names.push(side(if kind.has_strict_queue() {
                "redisson_lock_queue"
            } else {
                "locktopus_queue"
            }));
            names.push(side("locktopus_waiters"));
        }
        names.extend(further(row, &main));
        names.extend(apart(kind, &main));
        let slot = key_slot(main.as_bytes());
        names.insert(0, main);
        Self {
            names,
            channel: channel.map(Bytes::from),
            notification,
            inbox,
            native,
            slot,
            has_token: kind.has_tokens() || kind.hands_off(),
            waited: AtomicBool::new(false),
        }
    }

    /// The lock itself.
    #[must_use]
    pub fn main(&self) -> &str {
        &self.names[0]
    }

    /// The last fencing token, if it is kept.
    #[must_use]
    pub fn token(&self) -> Option<&str> {
        let token = self.names.get(1).filter(|_| self.has_token);
        token.map(String::as_str)
    }

    /// The hash slot of the main key.
    #[must_use]
    pub fn slot(&self) -> u16 {
        self.slot
    }

    /// Whether the channel belongs to another library, which uses plain pub/sub even in a cluster.
    pub(crate) fn is_plain(&self) -> bool {
        matches!(self.notification, Some(Notification::Channel(_)))
    }

    /// How to notify the other library's waiters, as script arguments: the message for the channel,
    /// and the list to push a one to.
    pub(crate) fn notify_args(&self) -> Option<[&[u8]; 2]> {
        self.notification
            .as_ref()
            .map(|notification| match notification {
                Notification::List(list) => [&b""[..], list.as_bytes()],
                _ => [self.main().as_bytes(), b""],
            })
    }

    /// Notes whether an attempt of this client had to wait.
    pub(crate) fn note_wait(&self, waited: bool) {
        self.waited.store(waited, Ordering::Relaxed);
    }

    /// Whether others probably wait for the lock, judging by this client's last attempt.
    pub(crate) fn others_wait(&self) -> bool {
        self.waited.load(Ordering::Relaxed)
    }

    /// All names, as scripts receive them.
    pub(crate) fn scripts(&self) -> Named<'_> {
        let mut names = [&b""[..]; MOST];
        for (slice, name) in names.iter_mut().zip(&self.names) {
            *slice = name.as_bytes();
        }
        Named {
            names,
            count: self.names.len(),
        }
    }

    /// The key that keeps the answer to an operation on a counter.
    pub(crate) fn done(&self, operation: &OwnerId) -> Vec<u8> {
        let prefix = prefix_name("locktopus_done", self.main());
        [prefix.as_bytes(), b":", operation.expose()].concat()
    }

    /// Checks that a cluster keeps all keys in one slot.
    ///
    /// # Errors
    ///
    /// [`NameError::Refused`] naming the rule. The keys are not changed to fit, because other
    /// clients would then use different keys for the same lock.
    pub fn check_one_slot(&self, backend: &'static str) -> Result<(), NameError> {
        let sides = self.names.iter().map(String::as_bytes);
        let list = match &self.notification {
            Some(Notification::List(list)) => Some(list.as_bytes()),
            _ => None,
        };
        // Plain channels have no slot.
        let channel = self.channel.as_deref().filter(|_| !self.is_plain());
        if sides
            .chain(channel)
            .chain(list)
            .all(|side| key_slot(side) == self.slot)
        {
            return Ok(());
        }
        Err(NameError::Refused {
            name: self.main().to_owned(),
            backend,
            rule: "its braces do not form a hash tag that a lock's keys can share in a cluster; use no braces \
                   at all, or one non-empty tag as in \"{user:7}:cart\""
                .to_owned(),
        })
    }
}

/// The key that keeps the record of an instance.
pub(crate) fn instance_key(namespace: &str, instance: InstanceId) -> String {
    prefix_name("locktopus_instance", &format!("{namespace}{instance}"))
}

/// The keys that a kind's extend script receives for a lock held by this owner.
///
/// It leaves out the other names, because a process that renews many locks builds these again and
/// again.
pub(crate) fn extended<'a>(
    target: &'a LockTarget,
    owner: &OwnerId,
) -> impl Iterator<Item = Cow<'a, [u8]>> {
    let (row, main) = (of(target.kind()), target.key());
    let names = row.map_or(Names::Lock, |row| row.extended_by);
    let further = match names {
        Names::Lock => None,
        Names::LockAndReader => further(row, &main).map(|prefix| {
            let (prefix, owner) = (prefix.as_bytes(), owner.expose());
            [prefix, b":", owner, b":rwlock_timeout:1"].concat()
        }),
        Names::Further => further(row, &main).map(String::into_bytes),
    };
    let main = match (names, main) {
        (Names::Further, _) => None,
        (_, Cow::Borrowed(main)) => Some(Cow::Borrowed(main.as_bytes())),
        (_, Cow::Owned(main)) => Some(Cow::Owned(main.into_bytes())),
    };
    main.into_iter().chain(further.map(Cow::Owned))
}

/// The key of a kind besides the lock, its token, its queue and its waiters.
pub(crate) fn further(row: Option<&RedisKind>, main: &str) -> Option<String> {
    Some((row?.further?)(main))
}

/// The key that says which kind a number belongs to.
pub(crate) fn kind_key(main: &str) -> String {
    prefix_name("locktopus_kind", main)
}

/// The keys that let a script tell apart the kinds stored as one number: the key that names the
/// kind, and the keys where other kinds keep their holders.
fn apart(kind: &LockKind, main: &str) -> Vec<String> {
    let holders = |kind: &LockKind| further(of(kind).filter(|row| row.counter.is_some()), main);
    if of(kind).is_none_or(|row| row.counter.is_none()) {
        return Vec::new();
    }
    let mut keys = vec![kind_key(main)];
    let own = holders(kind);
    for key in LockKind::all().iter().filter_map(holders) {
        if own.as_ref() != Some(&key) && !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

/// The keys of recently used locks, so that those of a hot lock are built once.
#[derive(Debug, Default)]
pub(crate) struct KeyCache {
    /// Looked up for every request. Each process seeds the hash anew.
    known: Mutex<HashMap<LockTarget, Arc<Keys>, foldhash::fast::RandomState>>,
}

/// The most locks remembered; a full cache is cleared.
const REMEMBERED: usize = 4096;

impl KeyCache {
    pub(crate) fn of(&self, target: &LockTarget) -> Arc<Keys> {
        let mut known = lock(&self.known);
        if let Some(keys) = known.get(target) {
            return Arc::clone(keys);
        }
        if known.len() >= REMEMBERED {
            known.clear();
        }
        let keys = Arc::new(Keys::of(target));
        known.insert(target.clone(), Arc::clone(&keys));
        keys
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use locktopus_contract::{LockName, MutexProfile};

    use super::*;

    fn keys(name: &str, kind: LockKind) -> Keys {
        Keys::of(&LockTarget::new(LockName::new(name).unwrap(), kind))
    }

    #[test]
    fn names_are_redissons() {
        let keys = keys("order", LockKind::Reentrant);
        assert_eq!(keys.main(), "order");
        assert_eq!(keys.token(), Some("redisson_lock_token:{order}"));
        assert_eq!(
            keys.channel.as_deref(),
            Some(&b"redisson_lock__channel:{order}"[..])
        );
        let braced = prefix_name("redisson_lock_token", "{a}:b");
        assert_eq!(braced, "redisson_lock_token:{a}:b");
    }

    #[test]
    fn kinds_with_a_number_know_where_the_others_keep_their_holders() {
        let (holders, expiries) = ("locktopus_holders:{order}", "{order}:timeout");
        let kind_key = "locktopus_kind:{order}";
        for (kind, last) in [
            (LockKind::Semaphore, [holders, kind_key, expiries]),
            (LockKind::RateLimiter, [holders, kind_key, expiries]),
            (LockKind::PermitSemaphore, [expiries, kind_key, holders]),
            (LockKind::Latch, [kind_key, holders, expiries]),
        ] {
            let names = keys("order", kind).names;
            assert!(names.ends_with(&last.map(str::to_owned)), "{names:?}");
        }
    }

    #[test]
    fn extensions_name_the_same_keys() {
        let owner = OwnerId::from_bytes(b"me".as_slice());
        let extended = |kind| {
            let target = LockTarget::new(LockName::new("order").unwrap(), kind);
            let names: Vec<_> = extended(&target, &owner).map(Cow::into_owned).collect();
            (Keys::of(&target), names)
        };
        for kind in [
            LockKind::Reentrant,
            LockKind::Mutex(Arc::default()),
            LockKind::Fair,
            LockKind::Write,
        ] {
            let (keys, names) = extended(kind);
            assert_eq!(names, [keys.main().as_bytes()]);
        }
        for kind in [
            LockKind::Semaphore,
            LockKind::PermitSemaphore,
            LockKind::RateLimiter,
        ] {
            let (keys, names) = extended(kind);
            assert_eq!(names, [keys.names[QUEUED].as_bytes()]);
        }
        let (keys, names) = extended(LockKind::Read);
        let own = format!("{}:me:rwlock_timeout:1", keys.names[QUEUED]);
        assert_eq!(names, [keys.main().as_bytes(), own.as_bytes()]);
    }

    #[test]
    fn a_cluster_takes_only_names_whose_tags_agree() {
        for good in ["plain", "a{b}c", "{t}:x"] {
            assert!(
                keys(good, LockKind::Reentrant)
                    .check_one_slot("test")
                    .is_ok(),
                "{good}"
            );
        }
        for bad in ["a{b", "x{}y", "a}b"] {
            let err = keys(bad, LockKind::Reentrant)
                .check_one_slot("test")
                .unwrap_err();
            assert!(err.to_string().contains(&format!("{bad:?}")), "{err}");
        }
    }

    #[test]
    fn scripts_get_every_key() {
        for kind in LockKind::all() {
            let keys = keys("order", kind);
            let given: Vec<_> = keys.scripts().iter().map(|name| name.to_vec()).collect();
            let names: Vec<_> = keys.names.iter().map(|name| name.as_bytes()).collect();
            assert_eq!(given, names);
        }
    }

    #[test]
    fn a_single_key_mutex_has_one_key() {
        let keys = keys("a{b", LockKind::Mutex(Arc::new(MutexProfile::single_key())));
        assert_eq!((keys.names.len(), keys.channel.clone()), (1, None));
        assert!(
            keys.check_one_slot("test").is_ok(),
            "one key is always in one slot"
        );
    }
}
