//! A name means exactly one lock, or is refused before anything is sent.

use std::time::Duration;

use locktopus_core::{AttemptOutcome, LockName, LockTarget, MAX_NAME_BYTES};

use crate::client::Client;
use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::LONG;

/// Endings that are special somewhere: hash tags, patterns, separators, quoting, other scripts.
const UNUSUAL: [&str; 32] = [
    "",
    "a",
    "A",
    "{a}",
    "{a",
    "a}",
    "a}{b",
    "{}",
    "{}a",
    "{{a}}",
    "}{",
    "*",
    "a*",
    "?",
    "[a]",
    "\\",
    "'",
    "\"",
    "a b",
    " ",
    "a\0b",
    "a\nb",
    "a\r\nb",
    "\u{e9}",
    "e\u{301}",
    "\u{65e5}\u{672c}",
    "a:b",
    "a%7Db",
    ":token",
    "redisson_lock_token:{a}",
    "$0; return 1",
    "\u{1f419}",
];

/// Locks of unusual names exist side by side.
pub async fn unusual_names_are_locks_or_refused(ctx: Ctx) {
    let a = ctx.first().await;
    let mut held = Vec::new();
    for ending in UNUSUAL {
        let target = ctx.target_with(&format!("|{ending}"));
        if a.backend.check(&target).is_err() {
            continue;
        }
        let (lock, owner) = (ctx.prepared(a.on(target)).await, ctx.owner());
        let answer = lock.try_attempt(&owner, LONG).await;
        let granted = matches!(answer, Ok(AttemptOutcome::Granted { .. }));
        Rule::Names.check(
            granted,
            format_args!("taking {:?} ended with {answer:?}", lock.target.name()),
        );
        held.push((lock, owner));
    }
    Rule::Names.check(held.len() >= 8, "nearly all unusual names are refused");
    // Checked only now, so that a name with two meanings has been granted twice or refused.
    for (lock, owner) in &held {
        let state = lock.state().await;
        Rule::Names.check(
            state.holder().is_some_and(|holder| holder.owner == *owner),
            format_args!("{:?} is not the only name of its lock", lock.target.name()),
        );
    }
    for (lock, owner) in held {
        lock.give_back(&owner).await;
    }
}

/// The longest names, and names that differ only in the last byte, are separate locks, or are
/// refused.
pub async fn long_names_are_locks_or_refused(ctx: Ctx) {
    let a = ctx.first().await;
    let prefix = ctx.name();
    let fill = "x".repeat(MAX_NAME_BYTES - prefix.len() - 1);
    let [one, two] = ["a", "b"].map(|last| {
        let name = LockName::new(format!("{prefix}{fill}{last}"));
        let name = name.expect("just as long as a name may be");
        a.on(LockTarget::new(name, ctx.flavour().kind()))
    });
    if one.backend.check(&one.target).is_err() {
        return;
    }
    let (one, two) = (ctx.prepared(one).await, ctx.prepared(two).await);
    let (first, second) = (ctx.owner(), ctx.owner());
    one.take(&first, LONG).await;
    two.take(&second, LONG).await;
    still(&one, &first).await;
    one.give_back(&first).await;
    still(&two, &second).await;
    two.give_back(&second).await;
}

async fn still(lock: &Client, owner: &locktopus_core::OwnerId) {
    Rule::Names.check(
        lock.remaining(owner).await > Duration::ZERO,
        "a long name is not the only name of its lock",
    );
}
