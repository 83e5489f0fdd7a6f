//! `break`: takes a lock away from its holder.

use clap::Args;
use locktopus::LockKind;
use serde::Serialize;

use super::Context;
use crate::exit::Exit;
use crate::failure::{Failure, word};
use crate::locks::{LockArgs, Seen, Shown, close, connect, find};
use crate::output::owner_tag;

/// Take a lock away from its holder
///
/// The next waiter gets the lock at once. The former holder works on until its next renewal, or
/// longer if it is stuck. Only a resource that checks fencing tokens rejects its writes.
#[derive(Args, Debug)]
pub(crate) struct BreakArgs {
    /// The lock's name, without the namespace
    name: String,

    #[command(flatten)]
    lock: LockArgs,

    /// Why you break it. The former holder, its log and watch show the reason
    #[arg(long)]
    reason: String,
}

#[derive(Serialize)]
struct Broken {
    /// The state just before.
    before: Shown,
    /// The owners that lost the lock.
    evicted: Vec<String>,
    /// Tokens up to this one are fenced.
    fence: Option<u64>,
}

pub(crate) async fn run(args: BreakArgs, context: &Context) -> Result<(), Failure> {
    let locks = connect(&context.config).await?;
    let done = async {
        let seen = find(&locks, &args.name, &args.lock).await?;
        let Seen::Lock { kind, state, who } = seen else {
            let (name, quoted) = (&args.name, word(&args.name));
            let problem = format!(
                "{name:?} is a latch, which has no holder; to open it, run locktopus latch delete {quoted}"
            );
            return Err(Failure::new(Exit::Usage, problem));
        };
        let before = Shown::new(&args.name, &kind, &state, &who);
        let request = locks.of_kind(&*args.name, kind);
        let eviction = request.force_release(args.reason).await?;
        // A read lock has no tokens, though the write half does.
        let fence = eviction
            .fence
            .filter(|_| before.kind != LockKind::Read.as_str());
        Ok(Broken {
            before,
            evicted: eviction.evicted.iter().map(owner_tag).collect(),
            fence: fence.map(locktopus::FencingToken::get),
        })
    };
    let broken = done.await;
    close(locks).await;
    context.out.answer(&broken?, text)
}

fn text(broken: &Broken) -> String {
    let (kind, name) = (broken.before.kind, &broken.before.name);
    if broken.evicted.is_empty() {
        return format!("{kind} {name:?} was not held");
    }
    let mut lines = vec![format!(
        "{kind} {name:?} was taken away from {}",
        broken.evicted.join(", ")
    )];
    for holder in &broken.before.holders {
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
