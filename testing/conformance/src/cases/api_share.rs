//! Sharing locks: re-entry, tickets, namespaces and shutdown.

use locktopus_core::{LeaseTicket, LockError, Locktopus, LostCause, Owner};
use tokio::time::{Duration, timeout};

use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::{LONG, until};

/// A guard can be re-entered if its kind is reentrant; the last guard to go frees the lock.
pub async fn guards_enter_again(ctx: Ctx) {
    let (a, b) = (ctx.locks(0).await, ctx.second().await);
    let outer = Rule::Api.ok(ctx.request(&a).acquire().await, "acquiring");
    let inner = outer.reenter();
    if !ctx.flavour().kind().is_reentrant() {
        Rule::Api.check(
            matches!(inner, Err(LockError::NotReentrant { .. })),
            "a mutex was entered twice",
        );
        Rule::Api.ok(outer.release().await, "a release");
        return;
    }
    let inner = Rule::Api.ok(inner, "entering again");
    Rule::Api.check(
        inner.hold_count() == 2 && inner.token() == outer.token(),
        "entering again is not the same lease",
    );
    Rule::Api.ok(outer.release().await, "the first release");
    b.refused(&ctx.owner()).await;
    Rule::Api.ok(inner.release().await, "the last release");
    let next = ctx.owner();
    b.take(&next, LONG).await;
    b.give_back(&next).await;
}

/// An owner handle may re-enter a reentrant lock, and gets an error if a kind is not reentrant.
pub async fn owners_enter_again(ctx: Ctx) {
    let slack = ctx.slack();
    let (a, b) = (ctx.locks(0).await, ctx.second().await);
    let (me, other) = (Owner::new(), Owner::new());
    let outer = Rule::Api.ok(ctx.request(&a).owner(&me).acquire().await, "acquiring");
    let strange = ctx.request(&a).owner(&other).try_acquire().await;
    Rule::Exclusion.check(
        Rule::Api.ok(strange, "a try").is_none(),
        "another owner entered",
    );
    let inner = timeout(slack, ctx.request(&a).owner(&me).acquire()).await;
    match (ctx.flavour().kind().is_reentrant(), inner) {
        (true, Ok(Ok(inner))) => {
            Rule::Api.check(inner.hold_count() == 2, "holds are not counted");
            drop(inner);
            b.refused(&ctx.owner()).await;
        }
        (false, Ok(Err(LockError::NotReentrant { .. }))) => {}
        (_, other) => Rule::Api.broken(format_args!("entering again ended with {other:?}")),
    }
    Rule::Api.ok(outer.release().await, "the last release");
    Rule::Api.check(
        b.state().await.holder().is_none(),
        "the lock was not given back",
    );
}

/// A ticket moves a lease to another client: same owner, same token, no gap.
pub async fn tickets_are_adopted(ctx: Ctx) {
    let (a, b) = (ctx.locks(0).await, ctx.locks(1).await);
    let observer = ctx.first().await;
    let guard = Rule::Api.ok(ctx.request(&a).acquire().await, "acquiring");
    let (token, owner, lease) = (guard.token(), guard.owner_id().clone(), guard.lease());
    let Ok(ticket) = guard.into_ticket() else {
        Rule::Api.broken("a good guard cannot become a ticket")
    };
    Rule::Api.check(
        lease.lost().await == LostCause::Transferred,
        "the old lease does not know",
    );
    observer.refused(&ctx.owner()).await;
    let ticket: LeaseTicket = Rule::Api.ok(ticket.expose().parse(), "parsing a ticket");
    let adopted = Rule::Api.ok(ctx.request(&b).adopt(&ticket).await, "adopting");
    Rule::Api.check(
        adopted.token() == token && *adopted.owner_id() == owner,
        "an adopted lease is another lease",
    );
    observer.refused(&ctx.owner()).await;
    Rule::Api.ok(adopted.release().await, "releasing an adopted lease");
    Rule::Api.check(
        observer.state().await.holder().is_none(),
        "the lock was not given back",
    );
}

/// A ticket whose lease has ended cannot be adopted, and the attempt creates nothing.
pub async fn a_late_ticket_is_refused(ctx: Ctx) {
    let short = ctx.short();
    let (a, b) = (ctx.locks(0).await, ctx.locks(1).await);
    let observer = ctx.first().await;
    let guard = ctx.request(&a).fixed_lease(short).acquire().await;
    let Ok(ticket) = Rule::Api.ok(guard, "acquiring").into_ticket() else {
        Rule::Api.broken("a good guard cannot become a ticket")
    };
    until(
        Rule::Lease,
        short,
        "a ticket's lease does not end",
        || async { observer.state().await.holder().is_none() },
    )
    .await;
    let adopted = ctx.request(&b).adopt(&ticket).await;
    Rule::Api.check(
        matches!(adopted, Err(LockError::Lost { .. })),
        format_args!("a late ticket gave {adopted:?}"),
    );
    Rule::Ownership.check(
        observer.state().await.holder().is_none(),
        "a late ticket created a lock",
    );
}

/// A shutdown releases every lock, ends waits, and notifies holders.
pub async fn a_shutdown_gives_back(ctx: Ctx) {
    let slack = ctx.slack();
    let (a, b) = (ctx.fresh_locks().await, ctx.first().await);
    let guard = Rule::Api.ok(ctx.request(&a).acquire().await, "acquiring");
    let waiter = tokio::spawn(ctx.request(&a).into_future());
    ctx.let_it_act(Duration::from_millis(50)).await;
    let report = a.shutdown(ctx.settling().await + slack).await;
    Rule::Api.check(
        report.abandoned == 0,
        format_args!("{} locks were not given back", report.abandoned),
    );
    Rule::Api.check(
        guard.lost().await == LostCause::ShutDown,
        "the holder does not know",
    );
    let waited = timeout(slack, waiter).await;
    Rule::Api.check(
        matches!(waited, Ok(Ok(Err(LockError::ShutDown)))),
        format_args!("a wait ended with {waited:?}"),
    );
    let next = ctx.owner();
    b.take(&next, LONG).await;
    let late = ctx.request(&a).try_acquire().await;
    Rule::Api.check(
        matches!(late, Err(LockError::ShutDown)),
        format_args!("acquiring after a shutdown gave {late:?}"),
    );
    drop(guard);
    b.holder(&next).await;
    b.give_back(&next).await;
}

/// A namespace is part of the name: it separates equal names and equates different spellings.
pub async fn namespaces_keep_apart(ctx: Ctx) {
    let plain = ctx.locks(0).await;
    let prefix = format!("{}/", ctx.name());
    let builder = Locktopus::builder_dyn(ctx.backend(1).await).namespace(prefix);
    let spaced = Rule::Api.ok(builder.build(), "building");
    let request = |locks: &Locktopus, name: &str| ctx.flavour().request(locks, name);
    let inside = Rule::Api.ok(request(&spaced, "x").acquire().await, "acquiring");
    let full = format!("{}/x", ctx.name());
    Rule::Names.check(
        inside.name().as_str() == full,
        "a name without its namespace",
    );
    let same = Rule::Api.ok(request(&plain, &full).try_acquire().await, "a try");
    Rule::Exclusion.check(same.is_none(), "one name twice");
    let other = request(&plain, &format!("{}x", ctx.name()))
        .try_acquire()
        .await;
    Rule::Names.check(
        Rule::Api.ok(other, "a try").is_some(),
        "a namespace does not keep names apart",
    );
    Rule::Api.ok(inside.release().await, "a release");
}

/// `inspect` shows who holds the lock.
pub async fn the_state_is_readable(ctx: Ctx) {
    let (a, b) = (ctx.locks(0).await, ctx.locks(1).await);
    let guard = Rule::Api.ok(ctx.request(&a).acquire().await, "acquiring");
    let state = Rule::Api.ok(ctx.request(&b).inspect().await, "inspecting");
    let shown = state
        .holder()
        .is_some_and(|holder| holder.owner == *guard.owner_id());
    Rule::Inspection.check(
        shown && state.last_token >= guard.token(),
        "the state does not show the holder",
    );
    Rule::Api.ok(guard.release().await, "a release");
    let state = Rule::Api.ok(ctx.request(&b).inspect().await, "inspecting");
    Rule::Inspection.check(state.holder().is_none(), "a free lock is shown as held");
}
