//! A name is in use as one kind: requesting it as another is an error at once, and changes nothing.
//! All pairs are tried.

use std::error::Error as _;
use std::fmt::Debug;
use std::sync::Arc;

use locktopus_core::{
    AcquireAttempt, AttemptOutcome, BackendError, BackendErrorKind, CounterAction, Executed,
    ExtendOutcome, GroupOutcome, LockKind, LockTarget, Mode, MutexProfile, OtherKind, OwnerId,
    ReleaseOutcome,
};
use tokio::time::timeout;

use crate::client::{Client, initial};
use crate::ctx::Ctx;
use crate::flavour::Flavour;
use crate::rule::Rule;
use crate::timing::{LONG, SLACK, until};

/// Every kind, and the mutex profiles that store different things.
fn kinds() -> Vec<LockKind> {
    let profiles = [
        MutexProfile::single_key(),
        MutexProfile::redis_py().with_side_keys(),
    ];
    let mutexes = profiles.map(|profile| LockKind::Mutex(Arc::new(profile)));
    LockKind::all().into_iter().chain(mutexes).collect()
}

/// The other kinds that this backend offers for such a name.
pub(super) fn others(of: &Client) -> Vec<Client> {
    let kinds = kinds().into_iter();
    let others = kinds.filter(|kind| kind.family() != of.target.kind().family());
    let others = others.map(|kind| of.as_kind(kind));
    others
        .filter(|other| other.backend.check(&other.target).is_ok())
        .collect()
}

/// Whether the kind has a number inside.
pub(super) fn has_number(kind: &LockKind) -> bool {
    kind.mode() == Mode::Permits || !kind.is_held()
}

/// Whether the kind is acquired with attempts; a latch is only waited for.
fn is_asked_for(kind: &LockKind) -> bool {
    *kind != LockKind::Latch
}

/// A name in use: a held lock, or a number.
struct InUse {
    client: Client,
    holder: Option<OwnerId>,
}

impl InUse {
    /// The flavour's own kind, or its other half.
    async fn begin(ctx: &Ctx, kind: LockKind) -> Self {
        let client = ctx.bare(0).await.as_kind(kind);
        let kind = client.target.kind();
        if has_number(kind) {
            let _ = client.initialise(3).await;
        }
        let holder = is_asked_for(kind).then(|| kind.new_owner());
        if let Some(owner) = &holder {
            // All kinds are tried meanwhile, which takes long on a busy server.
            client.take(owner, LONG * 10).await;
        }
        Self { client, holder }
    }

    async fn unchanged(&self, before: &str, picture: &str, what: impl Debug + Send + Sync) {
        let (client, kind) = (&self.client, self.client.target.kind());
        let said = |problem: &str| format!("{what:?} on a {} in use: {problem}", kind.as_str());
        if let Some(holder) = &self.holder {
            let state = client.state().await;
            Rule::Kinds.check(
                state.holders.len() == 1 && state.waiters.is_empty(),
                said("holders or waiters changed"),
            );
            Rule::Kinds.check(
                state.holders.iter().all(|it| it.owner == *holder),
                said("the holder changed"),
            );
        }
        if has_number(kind) {
            let number = 3 - i64::from(self.holder.is_some());
            Rule::Kinds.check(
                client.number().await == Some(number),
                said("the number changed"),
            );
        }
        let wrote = format!("{what:?} wrote: before {before}, after {picture}");
        Rule::Kinds.check(before == picture, wrote);
    }

    async fn end(self) {
        if let Some(holder) = &self.holder {
            self.client.give_back(holder).await;
        }
        if has_number(self.client.target.kind()) {
            let _ = self.client.count(CounterAction::Delete).await;
        }
    }
}

/// The kinds that a flavour is in use as, one after the other.
fn halves(ctx: &Ctx) -> Vec<LockKind> {
    match ctx.flavour() {
        Flavour::ReadWrite => vec![LockKind::Read, LockKind::Write],
        flavour => vec![flavour.kind()],
    }
}

/// Every request for a name as another kind is refused with an error that names the kind in use,
/// and changes nothing.
pub async fn another_kind_is_refused_and_changes_nothing(ctx: Ctx) {
    for kind in halves(&ctx) {
        let used = InUse::begin(&ctx, kind).await;
        let before = ctx.picture().await;
        for other in others(&used.client) {
            asked(&ctx, &used, &other, &before).await;
            counted(&ctx, &used, &other, &before).await;
            released(&ctx, &used, &other, &before).await;
        }
        used.end().await;
    }
}

/// Attempts of every form, alone and in groups, inspections, and evictions.
async fn asked(ctx: &Ctx, used: &InUse, other: &Client, before: &str) {
    let kind = other.target.kind();
    if !is_asked_for(kind) {
        return;
    }
    let attempt = || other.attempt_of(&kind.new_owner(), LONG);
    for attempt in [
        attempt(),
        AcquireAttempt {
            place: Some(LONG),
            ..attempt()
        },
        AcquireAttempt {
            recall: true,
            tokens: 16,
            ..attempt()
        },
    ] {
        let answer = other.backend.attempt(&attempt).await;
        refused(other, answer, "an attempt");
    }
    if other.backend.group(&other.target).is_some() {
        let answer = other.backend.attempt_all(&[attempt()]).await;
        refused(other, answer, "a group");
    }
    let deadline = other.deadline();
    let answer = other.backend.inspect(&other.target, deadline).await;
    refused(other, answer, "an inspection");
    if other.backend.directory().is_some() {
        let answer = other.backend.evict(&other.target, deadline).await;
        refused(other, answer, "an eviction");
    }
    used.unchanged(before, &ctx.picture().await, ("being asked for as", kind))
        .await;
}

/// Every operation on the number that the other kind has inside.
async fn counted(ctx: &Ctx, used: &InUse, other: &Client, before: &str) {
    let kind = other.target.kind();
    let actions = match kind {
        _ if !has_number(kind) => vec![],
        LockKind::Latch => vec![CounterAction::CountDown],
        LockKind::RateLimiter => vec![],
        _ => vec![
            CounterAction::Resize(7),
            CounterAction::Add(7),
            CounterAction::Add(-7),
            CounterAction::Drain,
        ],
    };
    let any = [CounterAction::Read, initial(kind, 7), CounterAction::Delete];
    let actions = actions
        .into_iter()
        .chain(any.into_iter().filter(|_| has_number(kind)));
    let actions: Vec<_> = actions.collect();
    for action in &actions {
        let answer = other.try_count(&OwnerId::generate(), *action).await;
        refused(other, answer, &format!("{action:?}"));
    }
    if !actions.is_empty() {
        let what = ("being counted as", kind);
        used.unchanged(before, &ctx.picture().await, what).await;
    }
}

/// A release or extension as another kind finds no hold, even under the holder's own id.
async fn released(ctx: &Ctx, used: &InUse, other: &Client, before: &str) {
    let kind = other.target.kind();
    if !is_asked_for(kind) {
        return;
    }
    // Owner ids are never the same in two acquisitions, so the holder's own id is not tried on
    // kinds that are stored alike.
    let kept = |kind: &LockKind| match kind {
        LockKind::Reentrant | LockKind::Fair | LockKind::Read => 1,
        LockKind::Semaphore | LockKind::RateLimiter => 2,
        _ => 0,
    };
    let alike = kept(kind) > 0 && kept(kind) == kept(used.client.target.kind());
    let own = used.holder.iter().filter(|_| !alike).cloned();
    for owner in own.chain([kind.new_owner()]) {
        let extended = other.extend(&owner, LONG * 40).await;
        Rule::Kinds.check(
            extended != ExtendOutcome::Extended,
            format_args!("a {kind:?} was extended on a name in use as something else"),
        );
        let outcome = other.release(&owner).await;
        Rule::Kinds.check(
            outcome == ReleaseOutcome::NotHeld,
            format_args!("a {kind:?} was released on a name in use as something else"),
        );
    }
    used.unchanged(before, &ctx.picture().await, ("being released as", kind))
        .await;
}

fn refused<T: Debug>(other: &Client, answer: Result<T, BackendError>, what: &str) {
    let asked = other.target.kind();
    let error = match answer {
        Err(error) => error,
        Ok(outcome) => Rule::Kinds.broken(format_args!(
            "{what} as {asked:?} on a name in use as something else was answered {outcome:?}"
        )),
    };
    let source = error.source().and_then(|source| source.downcast_ref());
    let told = source.is_some_and(|told: &OtherKind| {
        told.asked == other.target && !told.found.is_empty() && told.found != asked.as_str()
    });
    Rule::Kinds.check(
        told && error.kind() == BackendErrorKind::OtherKind
            && error.executed() == Executed::No
            && !error.is_transient(),
        format_args!("{what} as {asked:?} on a name in use as something else ended with {error:?}"),
    );
}

/// If one member of a group is in use as another kind, none is taken, and the answer names it.
pub async fn a_group_with_another_kind_is_not_taken(ctx: Ctx) {
    let first = ctx.bare(0).await;
    let free = first.on(ctx.target_with("/free"));
    let used = first.on(ctx.target_with("/used"));
    let group = first.backend.group(&free.target);
    if group.is_none() || first.backend.group(&used.target) != group {
        return ctx.skip("no locks that can be taken together");
    }
    for other in others(&used)
        .iter()
        .filter(|other| !has_number(other.target.kind()))
    {
        let holder = other.target.kind().new_owner();
        other.take(&holder, LONG).await;
        let owners = [ctx.owner(), ctx.owner()];
        let attempts = [
            free.attempt_of(&owners[0], LONG),
            used.attempt_of(&owners[1], LONG),
        ];
        match first.backend.attempt_all(&attempts).await {
            Ok(GroupOutcome::Granted { .. }) => {
                Rule::Kinds.broken("a group was granted with a name in use as something else")
            }
            answer => refused(&used, answer, "a group"),
        }
        Rule::Group.check(
            !free.is_held_by(&owners[0]).await,
            "a group that was refused left a lock taken",
        );
        other.give_back(&holder).await;
    }
}

/// A request that would wait gets the error at once, like one that would not.
pub async fn a_waiter_for_another_kind_is_told_at_once(ctx: Ctx) {
    let locks = ctx.locks(0).await;
    for kind in halves(&ctx) {
        let used = InUse::begin(&ctx, kind).await;
        let wanted = Flavour::ALL.iter().filter(|flavour| {
            let asked = LockTarget::new(ctx.target().name().clone(), flavour.kind());
            asked.kind().is_held()
                && asked.kind().family() != used.client.target.kind().family()
                && used.client.backend.check(&asked).is_ok()
        });
        for flavour in wanted {
            let request = flavour.request(&locks, ctx.name());
            let Ok(answer) = timeout(SLACK, request.acquire()).await else {
                Rule::Kinds.broken(format_args!(
                    "{flavour:?} was waited for on a name in use as something else"
                ))
            };
            let error = answer.as_ref().err();
            let told = error.and_then(|error| error.other_kind().zip(Some(error.to_string())));
            Rule::Kinds.check(
                told.is_some_and(|(other, text)| text.contains(&other.found)),
                format_args!("acquiring as {flavour:?} ended with {answer:?}"),
            );
        }
        if ctx.flavour() != Flavour::Latch {
            let latch = locks.latch(ctx.name());
            let asked = LockTarget::new(ctx.target().name().clone(), LockKind::Latch);
            if used.client.backend.check(&asked).is_ok() {
                let Ok(answer) = timeout(SLACK, latch.wait().into_future()).await else {
                    Rule::Kinds.broken("a latch was waited for on a name in use as something else")
                };
                Rule::Kinds.check(
                    answer.is_err_and(|error| error.other_kind().is_some()),
                    "waiting for a latch on a name in use as something else did not say so",
                );
            }
        }
        used.end().await;
    }
}

/// A name that is no longer in use may be used as any kind.
pub async fn a_name_that_is_free_again_may_be_another_kind(ctx: Ctx) {
    for kind in halves(&ctx) {
        let of = ctx.bare(0).await.as_kind(kind.clone());
        for other in others(&of) {
            InUse::begin(&ctx, kind.clone()).await.end().await;
            let kind = other.target.kind();
            if has_number(kind) {
                let set = other.initialise(1).await;
                Rule::Kinds.check(
                    set.changed,
                    "a name that was free could not be given a number",
                );
            }
            if is_asked_for(kind) {
                let owner = kind.new_owner();
                other.take(&owner, LONG).await;
                other.give_back(&owner).await;
            }
            if has_number(kind) {
                let _ = other.count(CounterAction::Delete).await;
            }
        }
    }
}

/// A free name with waiters belongs to them: their lock is not granted to another kind.
pub async fn a_queue_belongs_to_its_kind(ctx: Ctx) {
    let a = ctx.first().await;
    let (dead, waiter, short) = (ctx.owner(), ctx.owner(), ctx.short());
    a.take(&dead, short).await;
    let place = AcquireAttempt {
        place: Some(LONG),
        ..a.attempt_of(&waiter, LONG)
    };
    let queued = a.send(&place).await;
    Rule::Queue.check(
        matches!(queued, AttemptOutcome::Queued { .. }),
        format_args!("a place behind a holder was answered {queued:?}"),
    );
    until(Rule::Lease, short, "a lease does not end", || async {
        !a.is_held_by(&dead).await
    })
    .await;
    // Mutexes of other libraries see no queue, and a fair lock has its own.
    let queues = |other: &Client| match other.target.kind() {
        LockKind::Reentrant | LockKind::Write | LockKind::Semaphore => true,
        LockKind::Mutex(profile) => profile.is_native(),
        _ => false,
    };
    for other in others(&a).iter().filter(|other| queues(other)) {
        if other.target.kind().mode() == Mode::Permits {
            let answer = other
                .try_count(&OwnerId::generate(), CounterAction::Initialise(1))
                .await;
            refused(other, answer, "Initialise");
        } else {
            let answer = other
                .try_attempt(&other.target.kind().new_owner(), LONG)
                .await;
            refused(other, answer, "an attempt");
        }
    }
    let granted = a.send(&place).await;
    Rule::Queue.check(
        matches!(granted, AttemptOutcome::Granted { .. }),
        format_args!("the first of the queue was answered {granted:?}"),
    );
    a.give_back(&waiter).await;
}
