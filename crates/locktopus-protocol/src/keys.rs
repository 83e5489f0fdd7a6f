//! Where the bytes of a lock live: key names, channels, slots.

use std::borrow::Cow;

use bytes::Bytes;
use locktopus_core::{LockKind, LockTarget, NameError};

use crate::slot::key_slot;

/// The names a lock uses on Redis.
///
/// The main key is the lock's name itself. Everything beside it is named as Redisson does: a prefix, then
/// the name as a hash tag, so that a cluster keeps all of it in one slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// The lock itself.
    pub main: String,
    /// The last fencing token; `None` for a single-key mutex.
    pub token: Option<String>,
    /// The channel on which a release is announced; `None` for a single-key mutex.
    pub channel: Option<Bytes>,
}

impl Keys {
    /// The names for a target.
    #[must_use]
    pub fn of(target: &LockTarget) -> Self {
        match target.kind() {
            LockKind::Mutex(profile) => {
                let main = profile.key(target.name());
                if profile.has_side_keys() {
                    Self::with_side_keys(main, "locktopus_mutex__channel")
                } else {
                    Self {
                        main,
                        token: None,
                        channel: None,
                    }
                }
            }
            // `LockKind` grows; backends refuse kinds they do not know in `check`.
            _ => Self::with_side_keys(target.name().as_str().to_owned(), "redisson_lock__channel"),
        }
    }

    fn with_side_keys(main: String, channel: &str) -> Self {
        let token = Some(prefix_name("redisson_lock_token", &main));
        let channel = Some(prefix_name(channel, &main).into());
        Self {
            main,
            token,
            channel,
        }
    }

    /// The hash slot of the main key.
    #[must_use]
    pub fn slot(&self) -> u16 {
        key_slot(self.main.as_bytes())
    }

    /// Checks that a cluster keeps all of it in one slot.
    ///
    /// # Errors
    ///
    /// [`NameError::Refused`] naming the rule. The keys are not bent to fit: a changed key would no longer
    /// be shared with anybody.
    pub fn check_one_slot(&self, backend: &'static str) -> Result<(), NameError> {
        let slot = self.slot();
        let sides = [
            self.token.as_deref().map(str::as_bytes),
            self.channel.as_deref(),
        ];
        if sides
            .into_iter()
            .flatten()
            .all(|side| key_slot(side) == slot)
        {
            return Ok(());
        }
        Err(NameError::Refused {
            name: self.main.clone(),
            backend,
            rule: "its braces do not form a hash tag that a lock's keys can share in a cluster; use no braces \
                   at all, or one non-empty tag as in \"{user:7}:cart\""
                .to_owned(),
        })
    }
}

/// Redisson's `prefixName`: the name becomes a hash tag unless it has a brace already.
fn prefix_name(prefix: &str, name: &str) -> String {
    let tagged: Cow<'_, str> = if name.contains('{') {
        name.into()
    } else {
        format!("{{{name}}}").into()
    };
    format!("{prefix}:{tagged}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use locktopus_core::{LockName, MutexProfile};

    use super::*;

    fn keys(name: &str, kind: LockKind) -> Keys {
        Keys::of(&LockTarget::new(LockName::new(name).unwrap(), kind))
    }

    #[test]
    fn names_are_redissons() {
        let keys = keys("order", LockKind::Reentrant);
        assert_eq!(keys.main, "order");
        assert_eq!(keys.token.as_deref(), Some("redisson_lock_token:{order}"));
        assert_eq!(
            keys.channel.as_deref(),
            Some(&b"redisson_lock__channel:{order}"[..])
        );
        let braced = super::prefix_name("redisson_lock_token", "{a}:b");
        assert_eq!(braced, "redisson_lock_token:{a}:b");
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
    fn a_single_key_mutex_has_one_key() {
        let keys = keys("a{b", LockKind::Mutex(Arc::new(MutexProfile::single_key())));
        assert_eq!((keys.token.clone(), keys.channel.clone()), (None, None));
        assert!(
            keys.check_one_slot("test").is_ok(),
            "one key is always in one slot"
        );
    }
}
