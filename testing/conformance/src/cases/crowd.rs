//! Many requests at once. A backend may send them together, but each must be answered as if it were
//! sent alone, whatever happens to the others.

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use locktopus_core::{
    AttemptOutcome, BackendErrorKind, Executed, LockName, LockTarget, OwnerId, ReleaseOutcome,
};
use tokio::time::Instant;

use super::errors::poll_some;
use super::kinds::{has_number, others};
use crate::client::Client;
use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::{LONG, until};

/// How many owners ask at once.
const CROWD: usize = 40;

/// A crowd of owners, each with a lock of its own.
async fn crowd(ctx: &Ctx) -> Vec<(Client, OwnerId)> {
    let first = ctx.first().await;
    let locks = (0..CROWD).map(|at| {
        let lock = first.on(ctx.target_with(&format!("-{at}")));
        async move { (ctx.prepared(lock).await, ctx.owner()) }
    });
    join_all(locks).await
}

async fn give_back(crowd: &[(Client, OwnerId)]) {
    join_all(crowd.iter().map(|(lock, owner)| lock.release(owner))).await;
}

/// Attempts for free locks and for held ones, releases, and locks of another kind.
pub async fn requests_of_all_sorts_are_each_answered(ctx: Ctx) {
    let crowd = crowd(&ctx).await;
    let (held, free) = crowd.split_at(CROWD / 2);
    join_all(held.iter().map(|(lock, owner)| lock.take(owner, LONG))).await;
    let (stay, go) = held.split_at(CROWD / 4);
    let attempts = free.iter().map(|(lock, owner)| async move {
        let token = lock.take(owner, LONG).await;
        let promised = lock.target.kind().has_tokens();
        Rule::Tokens.check(token.is_some() == promised, "a token in a crowd");
        lock.is_held_by(owner).await
    });
    let strangers = stay.iter().map(|(lock, owner)| async {
        lock.refused(&ctx.owner()).await;
        lock.is_held_by(owner).await
    });
    let releases = go.iter().map(|(lock, owner)| async move {
        let released = lock.release(owner).await == ReleaseOutcome::Released;
        released && !lock.is_held_by(owner).await
    });
    let kinds = free.iter().map(|(lock, _)| async move {
        let mut others = others(lock).into_iter();
        let Some(other) = others.find(|it| !has_number(it.target.kind())) else {
            return true;
        };
        let name = format!("{}-other", other.target.name());
        let other = other.on(LockTarget::new(
            LockName::new(name).expect("short enough"),
            other.target.kind().clone(),
        ));
        let owner = other.target.kind().new_owner();
        other.take(&owner, LONG).await;
        other.release(&owner).await == ReleaseOutcome::Released
    });
    let (attempts, strangers, releases, kinds) = tokio::join!(
        join_all(attempts),
        join_all(strangers),
        join_all(releases),
        join_all(kinds)
    );
    let all = [attempts, strangers, releases, kinds].concat();
    Rule::Ownership.check(
        all.into_iter().all(|right| right),
        "one of a crowd was answered otherwise than what happened",
    );
    give_back(&crowd).await;
}

/// One name is in use as another kind. Only the owner that asks for it gets an error.
pub async fn one_of_a_crowd_is_refused(ctx: Ctx) {
    let mut crowd = crowd(&ctx).await;
    // Its name is not in use yet, not even as a semaphore with a number.
    let refused = ctx.bare(0).await.on(ctx.target_with("-refused"));
    let mut others = others(&refused).into_iter();
    let Some(other) = others.find(|it| !has_number(it.target.kind())) else {
        return ctx.skip("this backend has no other kind for such a name");
    };
    let holder = other.target.kind().new_owner();
    other.take(&holder, LONG).await;
    crowd.insert(CROWD / 2, (refused, ctx.owner()));
    let answers = crowd
        .iter()
        .map(|(lock, owner)| lock.try_attempt(owner, LONG));
    for (at, answer) in join_all(answers).await.into_iter().enumerate() {
        match answer {
            Ok(answer) => Rule::Exclusion.check(
                at != CROWD / 2 && matches!(answer, AttemptOutcome::Granted { .. }),
                format_args!("number {at} of a crowd was answered {answer:?}"),
            ),
            Err(error) => Rule::Errors.check(
                at == CROWD / 2
                    && error.kind() == BackendErrorKind::OtherKind
                    && error.executed() == Executed::No,
                format_args!("number {at} of a crowd got the error {error:?}"),
            ),
        }
    }
    other.give_back(&holder).await;
    let _ = crowd.remove(CROWD / 2);
    give_back(&crowd).await;
}

/// Each request has its own deadline.
pub async fn one_of_a_crowd_is_late(ctx: Ctx) {
    let crowd = crowd(&ctx).await;
    let (late, ghost) = &crowd[CROWD / 2];
    let attempts = crowd.iter().map(|(lock, owner)| {
        let mut attempt = lock.attempt_of(owner, LONG);
        if owner == ghost {
            attempt.deadline = Instant::now();
        }
        async move { lock.backend.attempt(&attempt).await }
    });
    for (answer, (_, owner)) in join_all(attempts).await.into_iter().zip(&crowd) {
        match answer {
            Ok(AttemptOutcome::Granted { .. }) => {}
            Err(error) if owner == ghost => {
                let held = late.is_held_by(ghost).await;
                Rule::Errors.check(
                    !(held && error.executed() == Executed::No),
                    "an attempt took the lock and was answered Executed::No",
                );
            }
            answer => Rule::Deadlines.broken(format_args!("one in time was answered {answer:?}")),
        }
    }
    give_back(&crowd).await;
}

/// Some futures are dropped while their requests are under way. The others are answered. What the
/// dropped ones took is free after a release, or at the latest when its lease ends.
pub async fn some_of_a_crowd_are_dropped(ctx: Ctx) {
    let short = ctx.short();
    let crowd = crowd(&ctx).await;
    let attempts = crowd
        .iter()
        .enumerate()
        .map(|(at, (lock, owner))| async move {
            match at % 4 {
                0 => {
                    poll_some(at / 8, lock.try_attempt(owner, short))
                        .boxed()
                        .await
                }
                _ => drop(lock.take(owner, LONG).await),
            }
        });
    join_all(attempts).await;
    for (at, (lock, owner)) in crowd.iter().enumerate() {
        if at % 4 != 0 {
            lock.holder(owner).await;
        }
    }
    give_back(&crowd).await;
    for (lock, _) in crowd.iter().step_by(4) {
        let next = ctx.owner();
        until(
            Rule::CancelSafety,
            short,
            "a dropped attempt of a crowd keeps its lock",
            || async {
                matches!(
                    lock.attempt(&next, LONG).await,
                    AttemptOutcome::Granted { .. }
                )
            },
        )
        .await;
        lock.give_back(&next).await;
    }
}
