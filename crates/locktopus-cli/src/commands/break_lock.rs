//! `break`: takes a lock away from its holder.

use std::collections::HashSet;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use locktopus::{Eviction, LockKind, Locktopus};
use serde::Serialize;

use super::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::locks::{Found, Holder, LockArgs, LockView, close, connect, find};
use crate::output::{owner_tag, visible};

/// Begins every tag of an owner. It may be left out.
const TAG: &str = "owner#";

/// Take a lock away from its holder
///
/// The next waiter gets the lock at once. The former holder works on until its next renewal, or
/// longer if it is stuck. Only a resource that checks fencing tokens rejects its writes. Nothing
/// happens to a lock that nobody holds or waits for.
#[derive(Args, Debug)]
pub(crate) struct BreakArgs {
    /// The lock's name, without the namespace
    name: String,

    #[command(flatten)]
    lock: LockArgs,

    /// Why you break it. The former holder, its log and watch show the reason
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    reason: String,

    /// Do it only if this owner holds the lock, as status shows it: owner#fe587afb. Otherwise exit
    /// with 75, and say who holds it now. The other holders of a semaphore or a read lock keep it
    #[arg(long, value_name = "ID")]
    owner: Option<String>,
}

#[derive(Serialize)]
pub(super) struct Broken {
    /// The state just before.
    before: LockView,
    /// The owners that lost the lock.
    pub(super) evicted: Vec<String>,
    /// Tokens up to this one are fenced.
    pub(super) fence: Option<u64>,
}

pub(crate) async fn run(args: BreakArgs, context: &Context) -> Result<(), Failure> {
    let locks = connect(&context.config).await?;
    let (owner, reason) = (args.owner.as_deref(), args.reason);
    let broken = take_away(&locks, &args.name, &args.lock, owner, reason).await;
    close(locks).await;
    context.out.answer(&broken?, text)
}

/// Takes the lock away from all its holders, or from one owner.
pub(super) async fn take_away(
    locks: &Locktopus,
    name: &str,
    args: &LockArgs,
    owner: Option<&str>,
    reason: String,
) -> Result<Broken, Failure> {
    let (kind, state, who) = find(locks, name, args).await?.lock(
        name,
        ", which has no holder; to open it, run locktopus latch delete",
    )?;
    let before = LockView::new(name, &kind, &state, &who);
    let request = locks.of_kind(name, kind);
    let eviction = if let Some(tag) = owner {
        let asked = tag.strip_prefix(TAG).unwrap_or(tag);
        let mut holders = state.holders.iter().map(|holder| &holder.owner);
        let found = holders.find(|owner| owner_tag(owner).strip_prefix(TAG) == Some(asked));
        let eviction = match found {
            Some(owner) => request.force_release_of(owner, reason).await?,
            None => Eviction::new(Vec::new(), None),
        };
        if eviction.evicted.is_empty() {
            return Err(not_held_by(tag, locks, name, args).await);
        }
        eviction
    } else if before.held || !before.waiters.is_empty() {
        request.force_release(reason).await?
    } else {
        // It would only reserve a token, which the server then keeps for this name.
        Eviction::new(Vec::new(), state.last_token)
    };
    // A read lock has no tokens, though the write half does.
    let fence = eviction
        .fence
        .filter(|_| before.kind != LockKind::Read.as_str());
    // A writer that also reads has two holds.
    let mut evicted: Vec<_> = eviction.evicted.iter().map(owner_tag).collect();
    let mut named = HashSet::new();
    evicted.retain(|owner| named.insert(owner.clone()));
    Ok(Broken {
        before,
        evicted,
        fence: fence.map(locktopus::FencingToken::get),
    })
}

/// Says who holds the lock instead.
async fn not_held_by(tag: &str, locks: &Locktopus, name: &str, args: &LockArgs) -> Failure {
    let tag = visible(tag);
    let mut message = format!("{name:?} is not held by {tag}, so nothing was done");
    if let Ok(Found::Lock { kind, state, who }) = find(locks, name, args).await {
        let now = LockView::new(name, &kind, &state, &who);
        let holders: Vec<_> = now.holders.iter().map(Holder::named).collect();
        message.push_str(&match holders.is_empty() {
            true => "; it is free".to_owned(),
            false => format!("; it is held by {}", holders.join(", ")),
        });
    }
    Failure::new(Exit::Busy, message)
}

fn text(broken: &Broken) -> String {
    let (kind, name) = (broken.before.kind, &broken.before.name);
    if broken.evicted.is_empty() {
        return format!("{kind} {name:?} was not held");
    }
    // Each owner once: a writer that also reads has two holds.
    let holders = &broken.before.holders;
    let lost = broken
        .evicted
        .iter()
        .filter_map(|owner| holders.iter().find(|holder| holder.owner == *owner));
    let mut lines = vec![format!(
        "{kind} {name:?} was taken away from {}",
        broken.evicted.join(", ")
    )];
    for holder in lost {
        let (owner, left) = (&holder.owner, &holder.remaining);
        let mut line = match holder.remaining_ms {
            Some(_) => format!("  {owner} had a lease of {left} left"),
            None => format!("  {owner} had a lease that never expires"),
        };
        if let (Some(held), Some(since)) = (holder.held(), &holder.held_since) {
            line.push_str(&format!(", and had held it for {held} (since {since})"));
        }
        lines.push(line);
        lines.extend(holder.person.line().map(|line| format!("    {line}")));
    }
    match broken.fence {
        Some(fence) => lines.push(format!(
            "  it may go on working until it notices; refuse writes with fencing tokens up to {fence}"
        )),
        None => lines.push(
            match kind {
                _ if kind == LockKind::Read.as_str() => {
                    "  readers may go on until they notice; they have no fencing tokens to stop them"
                }
                _ => "  it may go on working until it notices; this kind has no fencing tokens to stop it",
            }
            .to_owned(),
        ),
    }
    if !broken.before.waiters.is_empty() {
        lines.push(format!("  waiting for it: {}", broken.before.waiters.len()));
    }
    lines.join("\n")
}
