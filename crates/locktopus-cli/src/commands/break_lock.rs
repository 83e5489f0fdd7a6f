//! `break`: takes a lock away from whoever holds it.

use clap::Args;
use locktopus::LockKind;
use serde::Serialize;

use super::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::locks::{LockArgs, Seen, Shown, close, connect, find};
use crate::output::owner_tag;

/// Which lock to break.
///
/// Whoever held it may go on working until its next renewal, and longer if it is stuck: what it
/// still writes is kept out only where fencing tokens are checked. The next who waits gets the
/// lock.
#[derive(Args, Debug)]
pub(crate) struct BreakArgs {
    /// The lock's name, without the namespace
    name: String,

    #[command(flatten)]
    lock: LockArgs,

    /// Why. The victim, its log and watch show it
    #[arg(long)]
    reason: String,
}

#[derive(Serialize)]
struct Broken {
    /// As it was just before.
    before: Shown,
    /// Who held it and does not any more.
    evicted: Vec<String>,
    /// Tokens up to this one are fenced.
    fence: Option<u64>,
}

pub(crate) async fn run(args: BreakArgs, context: &Context) -> Result<(), Failure> {
    let locks = connect(&context.config).await?;
    let done = async {
        let seen = find(&locks, &args.name, &args.lock).await?;
        let Seen::Lock { kind, state, who } = seen else {
            let problem = "a latch is not held; locktopus latch delete opens it";
            return Err(Failure::new(Exit::Usage, problem));
        };
        let before = Shown::new(&args.name, &kind, &state, &who);
        let request = locks.of_kind(&*args.name, kind);
        let eviction = request.force_release(args.reason).await?;
        // Readers have no tokens, though those of the lock are fenced.
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
        return format!("{kind} {name:?} was held by nobody");
    }
    let mut lines = vec![format!(
        "{kind} {name:?} was taken away from {}",
        broken.evicted.join(", ")
    )];
    for holder in &broken.before.holders {
        let (owner, left) = (&holder.owner, &holder.remaining);
        let mut line = match holder.remaining_ms {
            Some(_) => format!("  {owner} had a lease of {left} left"),
            None => format!("  {owner} had a lease without an end"),
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
                    "  readers may go on until they notice; they have no fencing tokens to keep them out"
                }
                _ => "  it may go on working until it notices; this kind has no fencing tokens to keep it out",
            }
            .to_owned(),
        ),
    }
    if !broken.before.waiters.is_empty() {
        lines.push(format!("  {} waited for it", broken.before.waiters.len()));
    }
    lines.join("\n")
}
