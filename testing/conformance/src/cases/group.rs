//! Several locks are taken together, or none of them.

use locktopus_core::{AcquireAttempt, FencingToken, GroupOutcome, LockTarget, OwnerId};

use crate::client::Client;
use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::{LONG, ROUNDING, until};
use crate::waiter::Waiter;

/// How many locks the cases take together.
const COUNT: usize = 3;

/// Locks of one group are all granted, each with its own owner and token.
pub async fn a_group_is_taken_together(ctx: Ctx) {
    let Some(members) = members(&ctx).await else {
        return;
    };
    let groups: Vec<_> = members
        .iter()
        .map(|(lock, _)| lock.backend.group(&lock.target))
        .collect();
    Rule::Group.check(
        groups.iter().all(|group| *group == groups[0]),
        format_args!("locks that go together are of the groups {groups:?}"),
    );
    let tokens = granted(all(&members).await);
    for ((lock, owner), token) in members.iter().zip(tokens) {
        lock.holder(owner).await;
        let own = lock.take(owner, LONG).await;
        Rule::Tokens.check(
            own == token && token.is_some() == ctx.flavour().has_tokens(),
            format_args!("taken together with {token:?}, alone with {own:?}"),
        );
        lock.give_back(owner).await;
    }
}

/// If one of them is held, none is taken, and the answer names it.
pub async fn a_group_is_all_or_nothing(ctx: Ctx) {
    let Some(members) = members(&ctx).await else {
        return;
    };
    for held in 0..COUNT {
        let (lock, holder) = (&members[held].0, ctx.owner());
        lock.take(&holder, LONG).await;
        let outcome = all(&members).await;
        let GroupOutcome::Busy { index, remaining } = outcome else {
            Rule::Group.broken(format_args!(
                "number {held} is held, and all got {outcome:?}"
            ))
        };
        Rule::Group.check(
            index == held && remaining.is_none_or(|left| left <= LONG + ROUNDING),
            format_args!("number {held} is held, and number {index} is blamed ({remaining:?})"),
        );
        for (lock, owner) in &members {
            Rule::Group.check(
                !lock.is_held_by(owner).await,
                format_args!("number {held} is held, and another one was taken"),
            );
        }
        lock.give_back(&holder).await;
    }
}

/// Repeating the holders' request is the same grant.
pub async fn a_repeated_group_is_one_grant(ctx: Ctx) {
    let Some(members) = members(&ctx).await else {
        return;
    };
    let first = granted(all(&members).await);
    let again = granted(all(&members).await);
    Rule::Idempotence.check(
        first == again,
        format_args!("taken with {first:?}, repeated with {again:?}"),
    );
    for (lock, owner) in &members {
        lock.holder(owner).await;
        lock.give_back(owner).await;
        Rule::Idempotence.check(
            lock.state().await.holder().is_none(),
            "one release did not end a hold that was taken twice",
        );
    }
}

/// A group does not overtake a waiter for one of its locks.
pub async fn a_group_overtakes_nobody(ctx: Ctx) {
    let short = ctx.short();
    let Some(members) = members(&ctx).await else {
        return;
    };
    let lock = &members[1].0;
    let dead = ctx.owner();
    lock.take(&dead, short).await;
    let mut waiter = Waiter::join(lock, &ctx.owner()).await;
    until(Rule::Queue, short, "a lease does not end", || async {
        let over = !lock.is_held_by(&dead).await;
        let outcome = all(&members).await;
        Rule::Queue.check(
            matches!(outcome, GroupOutcome::Busy { index: 1, .. }),
            format_args!("somebody waits for number 1, and all got {outcome:?}"),
        );
        over
    })
    .await;
    waiter.asks().await;
    waiter.gives_back().await;
}

/// Locks of one group with an owner for each, or `None` if the case is skipped.
async fn members(ctx: &Ctx) -> Option<Vec<(Client, OwnerId)>> {
    let a = ctx.bare(0).await;
    let plain = (0..COUNT).map(|i| ctx.target_with(&format!("/{i}")));
    // If groups are hash slots, names with one tag share a group.
    let tagged = (0..COUNT).map(|i| ctx.target_named(&format!("{{{}}}/{i}", ctx.name())));
    for targets in [plain.collect::<Vec<_>>(), tagged.collect()] {
        let group = a.backend.group(&targets[0]);
        let fits = |t: &LockTarget| a.backend.check(t).is_ok() && a.backend.group(t) == group;
        if group.is_some() && targets.iter().all(fits) {
            let mut members = Vec::new();
            for target in targets {
                members.push((ctx.prepared(a.on(target)).await, ctx.owner()));
            }
            return Some(members);
        }
    }
    ctx.skip("no locks that can be taken together");
    None
}

async fn all(members: &[(Client, OwnerId)]) -> GroupOutcome {
    let attempts: Vec<AcquireAttempt> = members
        .iter()
        .map(|(lock, owner)| lock.attempt_of(owner, LONG))
        .collect();
    let outcome = members[0].0.backend.attempt_all(&attempts).await;
    Rule::Errors.ok(outcome, "an attempt for a group")
}

fn granted(outcome: GroupOutcome) -> Vec<Option<FencingToken>> {
    match outcome {
        GroupOutcome::Granted { tokens } if tokens.len() == COUNT => tokens,
        other => Rule::Group.broken(format_args!(
            "{COUNT} locks, all free or their owners' own, were answered {other:?}"
        )),
    }
}
