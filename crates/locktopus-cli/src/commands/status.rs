//! `status`: shows who holds a lock and who waits for it.

use clap::Args;
use serde::Serialize;

use super::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::locks::{Found, KEPT, LockArgs, LockView, close, connect, find, unknown_number};
use crate::output::{Style, coloured};

/// Show who holds a lock and who waits for it
#[derive(Args, Debug)]
pub(crate) struct StatusArgs {
    /// The lock's name, without the namespace
    name: String,

    #[command(flatten)]
    lock: LockArgs,

    /// Exit with 75 if it is held
    #[arg(long)]
    check: bool,
}

#[derive(Serialize)]
struct Latch {
    name: String,
    kind: &'static str,
    count: u64,
}

/// A number whose kind is unknown.
#[derive(Serialize)]
struct Number {
    name: String,
    kind: Option<&'static str>,
    value: i64,
}

pub(crate) async fn run(args: &StatusArgs, context: &Context) -> Result<u8, Failure> {
    let locks = connect(&context.config).await?;
    let seen = find(&locks, &args.name, &args.lock).await;
    close(locks).await;
    let held = match seen? {
        Found::Lock { kind, state, who } => {
            let shown = LockView::new(&args.name, &kind, &state, &who);
            context.out.answer(&shown, text)?;
            shown.held
        }
        Found::Latch(count) => {
            let latch = Latch {
                name: args.name.clone(),
                kind: "latch",
                count,
            };
            let text =
                |latch: &Latch| format!("latch {:?}: {} left to count", latch.name, latch.count);
            context.out.answer(&latch, text)?;
            count > 0
        }
        Found::Number(value) if args.check => {
            return Err(Failure::usage(unknown_number(&args.name, value)));
        }
        Found::Number(value) => {
            let number = Number {
                name: args.name.clone(),
                kind: None,
                value,
            };
            let text = |number: &Number| unknown_number(&number.name, number.value);
            context.out.answer(&number, text)?;
            false
        }
    };
    let exit = if args.check && held {
        Exit::Busy
    } else {
        Exit::Ok
    };
    Ok(exit.code())
}

fn text(shown: &LockView) -> String {
    let state = if shown.held {
        coloured(Style::Doubtful, "held")
    } else {
        coloured(Style::Good, "free")
    };
    describe(shown, &state)
}

/// Without colours, for a screen that has its own.
pub(crate) fn plain(shown: &LockView) -> String {
    describe(shown, if shown.held { "held" } else { "free" })
}

fn describe(shown: &LockView, state: &str) -> String {
    let mut lines = Vec::new();
    let kind = shown.kind;
    lines.push(format!("{kind} {:?} is {state}", shown.name));
    for holder in &shown.holders {
        let mut line = format!("  held by {}, {}", holder.owner, holder.mode);
        if holder.holds > 1 {
            line.push_str(&format!(", {} times", holder.holds));
        }
        line.push_str(&match (holder.remaining_ms, holder.warning) {
            (None, _) => format!(", lease {}", holder.remaining),
            _ if holder.released => format!(", released, and {KEPT} for {}", holder.remaining),
            (_, Some(warning)) => format!(", lease ends in {} ({warning})", holder.remaining),
            // One reading does not show whether it is renewed.
            (_, None) => format!(", lease ends in {} unless renewed", holder.remaining),
        });
        if let (Some(held), Some(since)) = (holder.held(), &holder.held_since) {
            line.push_str(&format!(", held for {held} (since {since})"));
        }
        lines.push(line);
        let by = if holder.released { "released by " } else { "" };
        lines.extend(holder.person.line().map(|line| format!("    {by}{line}")));
    }
    for (place, waiter) in shown.waiters.iter().enumerate() {
        let mut line = format!("  waiting {}: {}, {}", place + 1, waiter.owner, waiter.mode);
        if waiter.permits > 1 {
            line.push_str(&format!(", {} permits", waiter.permits));
        }
        if let Some(waited) = &waiter.waited {
            line.push_str(&format!(", for {waited}"));
        }
        lines.push(line);
        lines.extend(waiter.person.line().map(|line| format!("    {line}")));
    }
    if let Some(free) = shown.available {
        lines.push(format!("  free permits {free}"));
    }
    if let Some(token) = shown.reserved_token {
        let own = match shown.held {
            true => "; the holder's own may be lower",
            false => "",
        };
        lines.push(format!("  fencing tokens reserved up to {token}{own}"));
    }
    lines.join("\n")
}
