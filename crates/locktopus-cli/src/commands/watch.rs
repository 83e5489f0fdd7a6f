//! `watch`: prints a line for each change of a lock.

use std::time::Duration;

use clap::Args;
use humantime::parse_duration;
use locktopus::{FencingToken, LockState, Locktopus, OwnerId};
use serde::Serialize;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::Context;
use crate::exit::{self, Exit};
use crate::failure::{Failure, word};
use crate::locks::{Holder, LockArgs, Seen, Shown, close, connect, find};
use crate::output::age;

/// Print each change of a lock until interrupted
///
/// Polls the lock, so it misses what happens between two polls.
#[derive(Args, Debug)]
pub(crate) struct WatchArgs {
    /// The lock's name, without the namespace
    name: String,

    #[command(flatten)]
    lock: LockArgs,

    /// How often to poll
    #[arg(long, value_parser = parse_duration, default_value = "1s")]
    interval: Duration,

    /// Exit as soon as the lock is free
    #[arg(long)]
    until_free: bool,
}

/// A difference from the poll before.
#[derive(Serialize)]
struct Change {
    after_ms: u64,
    #[serde(skip)]
    after: String,
    #[serde(flatten)]
    lock: Shown,
    /// Why the lock was broken since the last poll.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    broken: Vec<String>,
}

/// The state at one poll. A line is printed when it changes.
#[derive(PartialEq)]
struct Look {
    owners: Vec<OwnerId>,
    last_token: Option<FencingToken>,
    waiters: usize,
    available: Option<i64>,
}

impl Look {
    fn at(state: &LockState) -> Self {
        Self {
            owners: state
                .holders
                .iter()
                .map(|holder| holder.owner.clone())
                .collect(),
            last_token: state.last_token,
            waiters: state.waiters.len(),
            available: state.available,
        }
    }
}

/// The reasons why former holders lost the lock by `break`, without repeats.
async fn reasons(locks: &Locktopus, before: Option<&Look>, now: &Look) -> Vec<String> {
    let mut reasons = Vec::new();
    let before = before.map_or(&[][..], |look| &look.owners);
    for owner in before.iter().filter(|owner| !now.owners.contains(owner)) {
        // Without an answer the change is printed without a reason.
        if let Ok(Some(reason)) = locks.break_reason(owner).await
            && !reasons.contains(&reason)
        {
            reasons.push(reason);
        }
    }
    reasons
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
        let mut before = None;
        loop {
            ticks.tick().await;
            let seen = match find(&locks, &args.name, &args.lock).await {
                Ok(seen) => seen,
                // An unreachable server may come back. Other errors are permanent.
                Err(failure) if failure.exit == Exit::Unavailable => {
                    context.out.say(&failure.message);
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            let Seen::Lock { kind, state, who } = seen else {
                let (name, quoted) = (&args.name, word(&args.name));
                return Err(Failure::usage(format!(
                    "{name:?} is a latch; wait for it with locktopus latch wait {quoted}"
                )));
            };
            let now = Look::at(&state);
            let free = state.holders.is_empty();
            if before.as_ref() != Some(&now) {
                let broken = reasons(&locks, before.as_ref(), &now).await;
                before = Some(now);
                let after = started.elapsed();
                let change = Change {
                    after_ms: u64::try_from(after.as_millis()).unwrap_or(u64::MAX),
                    after: age(after),
                    lock: Shown::new(&args.name, &kind, &state, &who),
                    broken,
                };
                context.out.answer(&change, text)?;
            }
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
    let token = lock.last_token.map(|token| format!(", token {token}"));
    let available = lock.available.map(|free| format!(", {free} permits free"));
    let broken = change.broken.iter();
    let broken: String = broken.map(|why| format!(", broken: {why:?}")).collect();
    format!(
        "{:>8}  {held}, {} waiting{}{}{broken}",
        change.after,
        lock.waiters.len(),
        token.unwrap_or_default(),
        available.unwrap_or_default()
    )
}
