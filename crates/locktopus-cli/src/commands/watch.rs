//! `watch`: prints a line for each change of a lock.

use std::time::{Duration, SystemTime};

use clap::Args;
use humantime::format_rfc3339_millis;
use locktopus::url::parse_duration;
use locktopus::{BreakReason, FencingToken, LockKind, LockState, Locktopus, OwnerId};
use serde::Serialize;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::Context;
use crate::exit::{self, Exit};
use crate::failure::Failure;
use crate::locks::{Holder, LockArgs, LockView, close, connect, find};

/// Print each change of a lock until interrupted
///
/// Each line has the time of this machine's clock, and tells how a hold ended: it was released, it
/// was broken, its lease expired, the servers lost it, or just that it ended, if the next holder
/// came before the next poll. Polls the lock, so it misses what happens between two polls.
#[derive(Args, Debug)]
pub(crate) struct WatchArgs {
    /// The lock's name, without the namespace
    name: String,

    #[command(flatten)]
    lock: LockArgs,

    /// How often to poll
    #[arg(long, value_parser = parse_duration, value_name = "TIME", default_value = "1s")]
    interval: Duration,

    /// Exit as soon as the lock is free
    #[arg(long)]
    until_free: bool,
}

/// A difference from the poll before.
#[derive(Serialize)]
struct Change {
    /// When it was seen, by this machine's clock.
    at: String,
    after_ms: u64,
    #[serde(flatten)]
    lock: LockView,
    /// The holders that are gone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ended: Vec<Ended>,
}

/// How a hold ended, as far as polls show.
#[derive(Serialize)]
struct Ended {
    holder: String,
    how: How,
    /// Why it was broken.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum How {
    Broken,
    /// The lease had ended by the time of the poll.
    Expired,
    /// The servers no longer know the last token, so they lost data.
    Lost,
    /// Or its key was deleted.
    Released,
    /// Another grant came since, or the kind has no tokens: the servers may have lost it as well.
    Gone,
}

/// The state at one poll.
struct Snapshot {
    /// When its answer came.
    at: Instant,
    holders: Vec<SeenHolder>,
    last_token: Option<FencingToken>,
    waiters: usize,
    available: Option<i64>,
}

struct SeenHolder {
    owner: OwnerId,
    name: String,
    /// When its lease ends at the earliest. `None`: never.
    until: Option<Instant>,
    /// Why this owner lost the lock before it took it again. A Java thread has one owner id for
    /// all its holds.
    earlier: Option<BreakReason>,
}

impl Snapshot {
    /// What the server said to a poll that was sent at `asked`, and answered now.
    fn new(asked: Instant, state: &LockState, shown: &LockView) -> Self {
        let holders = state.holders.iter().zip(&shown.holders);
        let holders = holders.map(|(holder, shown)| SeenHolder {
            owner: holder.owner.clone(),
            name: shown.named(),
            until: holder.remaining.map(|left| asked + left),
            earlier: None,
        });
        Self {
            at: Instant::now(),
            holders: holders.collect(),
            last_token: state.last_token,
            waiters: state.waiters.len(),
            available: state.available,
        }
    }

    fn holder(&self, owner: &OwnerId) -> Option<&SeenHolder> {
        self.holders.iter().find(|holder| holder.owner == *owner)
    }

    fn holds(&self, owner: &OwnerId) -> bool {
        self.holder(owner).is_some()
    }

    /// Whether to print a line. Renewals are none of the changes.
    fn differs(&self, other: &Self) -> bool {
        let parts = |of: &Self| (of.holders.len(), of.last_token, of.waiters, of.available);
        parts(self) != parts(other) || !self.holders.iter().all(|it| other.holds(&it.owner))
    }

    /// How a hold ended that is in this poll and no longer in `now`.
    fn how(&self, holder: &SeenHolder, now: &Self, broken: bool) -> How {
        if broken {
            How::Broken
        } else if self.last_token > now.last_token {
            How::Lost
        } else if holder.until.is_some_and(|until| until <= now.at) {
            How::Expired
        } else if self.last_token.is_some() && self.last_token == now.last_token {
            How::Released
        } else {
            How::Gone
        }
    }

    /// Fills in why the owners of new holds lost the lock before.
    async fn recall(&mut self, before: Option<&Self>, lock: &Watched<'_>) {
        for holder in &mut self.holders {
            let known = before.and_then(|before| before.holder(&holder.owner));
            holder.earlier = match known {
                Some(known) => known.earlier.clone(),
                None => lock.break_reason(&holder.owner).await,
            };
        }
    }

    /// The holds that ended since this poll.
    async fn ended(&self, lock: &Watched<'_>, now: &Self) -> Vec<Ended> {
        let mut ended = Vec::new();
        for holder in self.holders.iter().filter(|it| !now.holds(&it.owner)) {
            let reason = lock.break_reason(&holder.owner).await;
            let reason = reason.filter(|reason| holder.earlier.as_ref() != Some(reason));
            ended.push(Ended {
                holder: holder.name.clone(),
                how: self.how(holder, now, reason.is_some()),
                reason: reason.map(|broken| broken.reason),
            });
        }
        ended
    }
}

/// The lock under watch.
struct Watched<'a> {
    locks: &'a Locktopus,
    name: &'a str,
    kind: LockKind,
}

impl Watched<'_> {
    /// Without an answer a broken lock looks released.
    async fn break_reason(&self, owner: &OwnerId) -> Option<BreakReason> {
        let request = self.locks.of_kind(self.name, self.kind.clone());
        request.break_reason(owner).await.ok().flatten()
    }
}

pub(crate) async fn run(args: &WatchArgs, context: &Context) -> Result<u8, Failure> {
    if args.interval.is_zero() {
        return Err(Failure::usage("--interval must be longer than zero"));
    }
    let locks = connect(&context.config).await?;
    let watching = async {
        let started = Instant::now();
        let mut ticks = interval(args.interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut before: Option<Snapshot> = None;
        let mut trouble = None;
        let mut lock_args = args.lock.clone();
        loop {
            ticks.tick().await;
            let asked = Instant::now();
            let found = match find(&locks, &args.name, &lock_args).await {
                Ok(found) => found,
                // An unreachable server may come back. Other errors are permanent.
                Err(failure) if failure.exit == Exit::Unavailable => {
                    if trouble.as_ref() != Some(&failure.message) {
                        context.out.say(&failure.message);
                    }
                    trouble = Some(failure.message);
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            trouble = None;
            let (kind, state, who) =
                found.lock(&args.name, "; wait for it with locktopus latch wait")?;
            // Once no permits are on record, nothing may tell the kind any more.
            if matches!(kind, LockKind::Semaphore | LockKind::PermitSemaphore) {
                lock_args.kind.get_or_insert_with(|| kind.clone());
            }
            let lock = LockView::new(&args.name, &kind, &state, &who);
            let mut now = Snapshot::new(asked, &state, &lock);
            let watched = Watched {
                locks: &locks,
                name: &args.name,
                kind,
            };
            now.recall(before.as_ref(), &watched).await;
            let free = state.holders.is_empty();
            if before.as_ref().is_none_or(|before| now.differs(before)) {
                let ended = match &before {
                    Some(before) => before.ended(&watched, &now).await,
                    None => Vec::new(),
                };
                let after = started.elapsed().as_millis();
                let change = Change {
                    at: format_rfc3339_millis(SystemTime::now()).to_string(),
                    after_ms: u64::try_from(after).unwrap_or(u64::MAX),
                    lock,
                    ended,
                };
                context.out.answer(&change, text)?;
            }
            before = Some(now);
            if free && args.until_free {
                return Ok(Exit::Ok.code());
            }
        }
    };
    let done = tokio::select! {
        done = watching => done,
        _ = tokio::signal::ctrl_c() => Ok(exit::of_signal(rustix::process::Signal::INT)),
    };
    close(locks).await;
    done
}

fn text(change: &Change) -> String {
    let lock = &change.lock;
    let holders: Vec<_> = lock.holders.iter().map(Holder::named).collect();
    let held = if holders.is_empty() {
        "free".to_owned()
    } else {
        format!("held by {}", holders.join(", "))
    };
    let token = lock.reserved_token;
    let token = token.map(|token| format!(", tokens up to {token}"));
    let available = lock.available.map(|free| format!(", {free} permits free"));
    let ended: String = change.ended.iter().map(Ended::text).collect();
    format!(
        "{}  {held}, {} waiting{}{}{ended}",
        change.at,
        lock.waiters.len(),
        token.unwrap_or_default(),
        available.unwrap_or_default()
    )
}

impl Ended {
    fn text(&self) -> String {
        let holder = &self.holder;
        match (self.how, &self.reason) {
            (How::Broken, Some(reason)) => format!("; {holder} lost it by break: {reason:?}"),
            (How::Broken, None) => format!("; {holder} lost it by break"),
            (How::Expired, _) => format!("; the lease of {holder} expired"),
            (How::Lost, _) => format!("; the servers lost it, and {holder} with it"),
            (How::Released, _) => format!("; {holder} released it"),
            (How::Gone, _) => format!("; the hold of {holder} ended"),
        }
    }
}

#[cfg(test)]
mod tests {
    use locktopus::{HolderState, KnownInstances, LockKind, Mode};

    use super::*;

    fn snapshot(at: Instant, left: Option<Duration>, token: u64) -> Snapshot {
        let holder = SeenHolder {
            owner: OwnerId::generate(),
            name: "worker".to_owned(),
            until: left.map(|left| at + left),
            earlier: None,
        };
        Snapshot {
            at,
            holders: vec![holder],
            last_token: FencingToken::new(token),
            waiters: 0,
            available: None,
        }
    }

    #[test]
    fn a_hold_that_is_gone_was_broken_expired_lost_or_released() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let short = snapshot(start, Some(second / 2), 5);
        let long = snapshot(start, Some(second * 2), 5);
        let endless = snapshot(start, None, 5);
        let how = |before: &Snapshot, token, broken| {
            let now = snapshot(start + second, Some(second), token);
            assert!(now.differs(before));
            before.how(&before.holders[0], &now, broken)
        };
        assert_eq!(how(&short, 5, false), How::Expired);
        assert_eq!(how(&long, 5, false), How::Released);
        // The servers may have lost the lock and granted it again, at a later time of their clock.
        assert_eq!(how(&endless, 6, false), How::Gone);
        assert_eq!(how(&long, 4, false), How::Lost);
        assert_eq!(how(&short, 6, true), How::Broken);
    }

    /// The lease ends while the answer that tells of it is still on its way.
    #[test]
    fn a_slow_answer_does_not_make_a_lease_longer() {
        let (now, late) = (Instant::now(), Duration::from_secs(2));
        let left = Some(Duration::from_secs(1));
        let mut state = LockState::default();
        let holder = HolderState::new(OwnerId::generate(), Mode::Exclusive, 1, left);
        state.holders.push(holder);
        let who = KnownInstances::default();
        let shown = LockView::new("a", &LockKind::Reentrant, &state, &who);
        let held = Snapshot::new(now.checked_sub(late).unwrap(), &state, &shown);
        let free = Snapshot::new(now, &LockState::default(), &shown);
        assert_eq!(held.how(&held.holders[0], &free, false), How::Expired);
    }
}
