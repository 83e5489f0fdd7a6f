//! Read-write locks, as users of `Locktopus` see them.

use std::time::Duration;

use locktopus_core::{LockKind, Owner, RwLock};
use tokio::time::timeout;

use super::api_queue::queued;
use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::until;

async fn locks(ctx: &Ctx) -> (RwLock, RwLock) {
    let (a, b) = (ctx.locks(0).await, ctx.locks(1).await);
    (a.rw_lock(ctx.name()), b.rw_lock(ctx.name()))
}

/// Readers of two clients hold the lock together, and block a writer until the last one releases.
pub async fn readers_read_together(ctx: Ctx) {
    let (a, b) = locks(&ctx).await;
    let one = Rule::Api.ok(a.read().acquire().await, "reading");
    let two = Rule::Api.ok(b.read().acquire().await, "reading");
    let tried = Rule::Api.ok(b.write().try_acquire().await, "a try");
    Rule::ReadWrite.check(tried.is_none(), "a writer is in with readers");
    Rule::Tokens.check(one.token().is_none(), "a reader has a fencing token");
    let state = Rule::Api.ok(a.inspect().await, "inspecting");
    Rule::Inspection.check(
        state.holders.len() == 2,
        format_args!("two readers are shown as {:?}", state.holders),
    );
    Rule::Api.ok(one.release().await, "a release");
    let tried = Rule::Api.ok(a.write().try_acquire().await, "a try");
    Rule::ReadWrite.check(tried.is_none(), "a writer is in with a reader");
    Rule::Api.ok(two.release().await, "a release");
    let tried = Rule::Api.ok(a.write().try_acquire().await, "a try");
    Rule::ReadWrite.check(tried.is_some(), "a writer stays out without readers");
}

/// A writer excludes everyone else, and its tokens grow.
pub async fn a_writer_writes_alone(ctx: Ctx) {
    let (a, b) = locks(&ctx).await;
    let mut last = None;
    for lock in [&a, &b, &a] {
        let writer = Rule::Api.ok(lock.write().acquire().await, "writing");
        Rule::Tokens.check(
            writer.token() > last,
            format_args!("token {:?} followed {last:?}", writer.token()),
        );
        last = writer.token();
        let reading = Rule::Api.ok(b.read().try_acquire().await, "a try");
        let writing = Rule::Api.ok(a.write().try_acquire().await, "a try");
        Rule::ReadWrite.check(
            reading.is_none() && writing.is_none(),
            "somebody is in with a writer",
        );
        Rule::Api.ok(writer.release().await, "a release");
    }
}

/// A writer that downgrades to a reader lets waiting readers in before any writer.
pub async fn a_writer_becomes_a_reader(ctx: Ctx) {
    let slack = ctx.slack();
    let (a, b) = locks(&ctx).await;
    let observer = ctx.first().await;
    let writer = Rule::Api.ok(a.write().acquire().await, "writing");
    let waiting = tokio::spawn(b.read().into_future());
    queued(&observer, 1).await;
    let Ok(reader) = writer.downgrade().await else {
        Rule::Api.broken("a writer cannot go on as a reader")
    };
    let Ok(Ok(other)) = timeout(slack, waiting).await else {
        Rule::HandOff.broken("a downgrade did not let a waiting reader in")
    };
    let other = Rule::Api.ok(other, "reading");
    let tried = Rule::Api.ok(b.write().try_acquire().await, "a try");
    Rule::ReadWrite.check(tried.is_none(), "a writer is in with readers");
    Rule::Api.ok(reader.release().await, "a release");
    Rule::Api.ok(other.release().await, "a release");
    Rule::Api.check(
        observer.state().await.holders.is_empty(),
        "a downgraded hold was not given back",
    );
}

/// The owner that writes may read too, at once. It releases the two halves in any order.
pub async fn an_owner_reads_what_it_writes(ctx: Ctx) {
    let slack = ctx.slack();
    let (a, b) = locks(&ctx).await;
    let observer = ctx.first().await;
    for write_first in [true, false] {
        let me = Owner::new();
        let writing = Rule::Api.ok(a.write().owner(&me).acquire().await, "writing");
        let reading = timeout(slack, a.read().owner(&me).acquire()).await;
        let Ok(reading) = reading else {
            Rule::Api.broken("an owner waits for itself")
        };
        let reading = Rule::Api.ok(reading, "reading");
        let tried = Rule::Api.ok(b.read().try_acquire().await, "a try");
        Rule::ReadWrite.check(tried.is_none(), "somebody else reads with a writer");
        if write_first {
            Rule::Api.ok(writing.release().await, "a release");
            Rule::Api.ok(reading.ensure_valid(), "the other half");
            Rule::Api.ok(reading.release().await, "a release");
        } else {
            Rule::Api.ok(reading.release().await, "a release");
            Rule::Api.ok(writing.ensure_valid(), "the other half");
            Rule::Api.ok(writing.release().await, "a release");
        }
        until(
            Rule::Api,
            Duration::ZERO,
            "both halves were released and one is held",
            || async { observer.state().await.holders.is_empty() },
        )
        .await;
    }
}

/// When a write lease ends, waiting readers get in, although its owner still reads and the watchdog
/// renews the read lease.
pub async fn an_owner_that_only_reads_lets_readers_in(ctx: Ctx) {
    // Long enough for the second request of a busy machine.
    let short = ctx.short() * 4;
    let slack = ctx.slack();
    let (a, b) = locks(&ctx).await;
    let me = Owner::new();
    let writing = a.write().owner(&me).fixed_lease(short).acquire();
    let writing = Rule::Api.ok(writing.await, "writing");
    let reading = Rule::Api.ok(a.read().owner(&me).acquire().await, "reading");
    let waiting = tokio::spawn(b.read().into_future());
    ctx.waits_for_leases();
    let Ok(Ok(other)) = timeout(short + slack, waiting).await else {
        Rule::Lease.broken("a write lease ended, and a waiting reader did not get in")
    };
    let other = Rule::Api.ok(other, "reading");
    Rule::Api.check(
        writing.ensure_valid().is_err() && reading.ensure_valid().is_ok(),
        "of two halves the wrong one is lost",
    );
    Rule::Api.ok(reading.release().await, "a release");
    Rule::Api.ok(other.release().await, "a release");
    let tried = Rule::Api.ok(b.write().try_acquire().await, "a try");
    Rule::ReadWrite.check(tried.is_some(), "a writer stays out without readers");
    drop(writing);
}

/// Waiting readers and writers of two clients take turns. One that gives up blocks no other.
pub async fn waiting_halves_take_turns(ctx: Ctx) {
    let slack = ctx.slack();
    let (a, b) = locks(&ctx).await;
    let observer = ctx.first().await;
    let writer = Rule::Api.ok(a.write().acquire().await, "writing");
    let one = tokio::spawn(b.read().into_future());
    queued(&observer, 1).await;
    let two = tokio::spawn(a.read().into_future());
    queued(&observer, 2).await;
    let gone = tokio::spawn(b.write().into_future());
    queued(&observer, 3).await;
    let last = tokio::spawn(b.write().into_future());
    queued(&observer, 4).await;
    gone.abort();
    Rule::Api.ok(writer.release().await, "a release");
    drop(gone.await);
    let mut readers = Vec::new();
    for waiting in [one, two] {
        let Ok(Ok(reader)) = timeout(slack, waiting).await else {
            Rule::HandOff.broken("readers that waited together did not get in together")
        };
        readers.push(Rule::Api.ok(reader, "reading"));
    }
    Rule::ReadWrite.check(!last.is_finished(), "a writer is in with readers");
    for reader in readers {
        Rule::Api.ok(reader.release().await, "a release");
    }
    let Ok(Ok(writer)) = timeout(slack, last).await else {
        Rule::HandOff.broken("a writer behind one that gave up does not get in")
    };
    let writer = Rule::Api.ok(writer, "writing");
    Rule::Api.check(
        observer
            .on(ctx.target())
            .as_kind(LockKind::Write)
            .is_held_by(writer.owner_id())
            .await,
        "the writer's guard is not the holder",
    );
    Rule::Api.ok(writer.release().await, "a release");
}
