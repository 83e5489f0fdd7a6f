//! Faults that are planted to see whether the judge notices.

use std::borrow::Cow;

use locktopus_model::redis::Reply;

use crate::wrong_scripts::Patch;

/// Something wrong on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// Releasing does not look whose lock it is.
    ReleasesOthers,
    /// A server loses all its data now and then, and says nothing.
    Forgets,
    /// Renewals that are refused are answered as if they were granted.
    RenewsTheLost,
    /// A token is always the same.
    TokensStand,
    /// A lock is taken without an end.
    NeverEnds,
    /// A release that leaves the lock where it is, for ever.
    NeverFrees,
    /// More permits are given than there are.
    GivesTooMany,
    /// The safety mode is plain, whatever was chosen.
    IgnoresSafety,
    /// Servers of a quorum vote as soon as they are back.
    VotesAtOnce,
    /// Nobody tells a process for how long its machine slept.
    SleepsUnnoticed,
    /// When a slot of a cluster moves, its keys stay.
    LeavesKeysBehind,
    /// Sentinels do not tell how often a primary was replaced.
    EpochsUntold,
    /// Nobody hears what is published in a slot.
    ShardsAreSilent,
    /// A script has another text.
    Script(Patch),
}

impl Flaw {
    /// The text of a script with it.
    pub(crate) fn changes<'a>(self, name: &str, source: &'a str) -> Cow<'a, str> {
        if let Self::Script(patch) = self {
            return match patch.apply_to(name, source) {
                Ok(changed) => changed,
                // Under quarantine they are other scripts, without the fast path; and those of
                // groups are no kind's.
                Err(_) if name.starts_with("quarantined_") || name.starts_with("group_") => {
                    source.into()
                }
                Err(lacking) => panic!("{lacking}"),
            };
        }
        let (script, from, to) = match self {
            Self::ReleasesOthers => (
                "lock_release",
                "redis.pcall('HDEL', KEYS[1], ARGV[1])",
                "redis.pcall('DEL', KEYS[1])",
            ),
            Self::TokensStand => (
                "lock_acquire",
                "return fast_token <= now and fast_token",
                "return fast_token <= now and 7",
            ),
            Self::NeverEnds => (
                "lock_acquire",
                "redis.call('PEXPIRE', KEYS[1], ARGV[2])",
                "",
            ),
            Self::NeverFrees => (
                "lock_release",
                "redis.pcall('HDEL', KEYS[1], ARGV[1])",
                "redis.call('PERSIST', KEYS[1]) and 1",
            ),
            Self::GivesTooMany => (
                "permit_semaphore_acquire",
                "if free and free >= permits then",
                "if free and free >= permits - 1 then",
            ),
            _ => return source.into(),
        };
        if name.ends_with(script) && source.contains(from) {
            source.replacen(from, to, 1).into()
        } else {
            source.into()
        }
    }

    pub(crate) fn forgets(self, _name: &str, clock: i64) -> bool {
        self == Self::Forgets && clock % 101 == 0
    }

    /// What the client is answered.
    pub(crate) fn answers(self, name: &str, reply: Reply) -> Reply {
        match reply {
            Reply::Array(items) if self == Self::RenewsTheLost && name.ends_with("_extend") => {
                Reply::Array(items.iter().map(|_| Reply::Int(1)).collect())
            }
            reply => reply,
        }
    }
}
