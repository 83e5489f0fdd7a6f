//! Planted faults, which the judge must notice.

use std::borrow::Cow;

use locktopus_model::redis::Reply;

use crate::wrong_scripts::Patch;

/// Something wrong on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// A release does not check the owner.
    ReleasesOthers,
    /// A server silently loses all its data now and then.
    Forgets,
    /// Refused renewals are reported as granted.
    RenewsTheLost,
    /// Every grant has the same token.
    TokensStand,
    /// A lock is taken without an expiry.
    NeverEnds,
    /// A release leaves the lock in place for ever.
    NeverFrees,
    /// A semaphore grants more permits than it has.
    GivesTooMany,
    /// The safety mode is always plain.
    IgnoresSafety,
    /// Restarted servers of a quorum vote at once.
    VotesAtOnce,
    /// A process does not learn how long its machine slept.
    SleepsUnnoticed,
    /// A slot moves without its keys.
    LeavesKeysBehind,
    /// Sentinels do not tell how often a primary was replaced.
    EpochsUntold,
    /// Sharded messages are lost.
    ShardsAreSilent,
    /// The members of a batch get each other's replies.
    AnswersAreMixedUp,
    /// The last member of a batch gets an error that says it did not run, but it did.
    SaysItDidNotRun,
    /// The text of a script is changed.
    Script(Patch),
}

impl Flaw {
    /// The text of a script with this flaw.
    pub(crate) fn changes<'a>(self, name: &str, source: &'a str) -> Cow<'a, str> {
        if let Self::Script(patch) = self {
            return match patch.apply_to(name, source) {
                Ok(changed) => changed,
                // Quarantined scripts have no fast path, and group scripts belong to no kind.
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

    /// The reply that the client gets.
    pub(crate) fn answers(self, name: &str, reply: Reply) -> Reply {
        let batch = name.ends_with("_together");
        match reply {
            Reply::Array(mut items) if batch && self == Self::AnswersAreMixedUp => {
                items.reverse();
                Reply::Array(items)
            }
            Reply::Array(mut items) if batch && self == Self::SaysItDidNotRun => {
                let last = items.len() - 1;
                let place = i64::try_from(last).unwrap_or(0);
                items[last] = Reply::Nil;
                items.extend([Reply::Int(place), Reply::Bulk(b"OOM said so".to_vec())]);
                Reply::Array(items)
            }
            Reply::Array(items) if self == Self::RenewsTheLost && name.ends_with("_extend") => {
                Reply::Array(items.iter().map(|_| Reply::Int(1)).collect())
            }
            reply => reply,
        }
    }
}
