//! Readers share, a writer is alone, and neither starves the other.

use locktopus_core::{AttemptOutcome, ExtendOutcome, LockKind, Mode, OwnerId, ReleaseOutcome};

use crate::client::Client;
use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::{LONG, until};
use crate::waiter::Waiter;

/// Both halves of the lock of a case, through one client.
pub(super) async fn halves(ctx: &Ctx, index: usize) -> (Client, Client) {
    let write = ctx.bare(index).await;
    (write.as_kind(LockKind::Read), write)
}

/// Checks that exactly these holders are shown, in any order.
pub(super) async fn held_by(lock: &Client, owners: &[&OwnerId], what: &str) {
    let holders = lock.state().await.holders;
    let good = holders.len() == owners.len()
        && owners
            .iter()
            .all(|owner| holders.iter().any(|holder| holder.owner == **owner));
    Rule::ReadWrite.check(
        good,
        format_args!("{what}: {} hold it: {holders:?}", holders.len()),
    );
}

/// Readers of several clients hold the lock together, without tokens, and block writers.
pub async fn readers_share(ctx: Ctx) {
    let ((read_a, write_a), (read_b, _)) = (halves(&ctx, 0).await, halves(&ctx, 1).await);
    let readers: Vec<_> = (0..6).map(|_| ctx.owner()).collect();
    for (i, reader) in readers.iter().enumerate() {
        let lock = if i % 2 == 0 { &read_a } else { &read_b };
        let token = lock.take(reader, LONG).await;
        Rule::Tokens.check(token.is_none(), "a reader got a fencing token");
        write_a.refused(&ctx.owner()).await;
    }
    let all: Vec<_> = readers.iter().collect();
    held_by(&write_a, &all, "six readers").await;
    let holders = read_b.state().await.holders;
    Rule::Inspection.check(
        holders.iter().all(|holder| holder.mode == Mode::Read),
        "a reader is not shown as one",
    );
    for (left, reader) in readers.iter().enumerate() {
        write_a.refused(&ctx.owner()).await;
        read_b.give_back(reader).await;
        held_by(&write_a, &all[left + 1..], "after releases of readers").await;
    }
    let writer = ctx.owner();
    write_a.take(&writer, LONG).await;
    write_a.give_back(&writer).await;
}

/// A writer blocks readers and writers.
pub async fn a_writer_is_alone(ctx: Ctx) {
    let ((read_a, write_a), (read_b, write_b)) = (halves(&ctx, 0).await, halves(&ctx, 1).await);
    let (writer, next) = (ctx.owner(), ctx.owner());
    let token = write_a.take(&writer, LONG).await;
    Rule::Tokens.check(token.is_some(), "a writer got no fencing token");
    for stranger in [ctx.owner(), ctx.owner()] {
        read_a.refused(&stranger).await;
        read_b.refused(&stranger).await;
        write_b.refused(&stranger).await;
    }
    let shown = write_b.holder(&writer).await;
    Rule::Inspection.check(
        shown.mode == Mode::Exclusive,
        format_args!("a writer is shown as {:?}", shown.mode),
    );
    write_a.give_back(&writer).await;
    read_b.take(&next, LONG).await;
    read_b.give_back(&next).await;
    let again = write_b.take(&next, LONG).await;
    Rule::Tokens.check(
        again > token,
        format_args!("after token {token:?} and a reader a writer got {again:?}"),
    );
    write_b.give_back(&next).await;
}

/// The writer's owner, and no other, may read at the same time and keep reading after it stops
/// writing.
pub async fn a_writer_may_go_on_as_reader(ctx: Ctx) {
    let ((read_a, write_a), (read_b, write_b)) = (halves(&ctx, 0).await, halves(&ctx, 1).await);
    let (writer, other) = (ctx.owner(), ctx.owner());
    write_a.take(&writer, LONG).await;
    read_a.take(&writer, LONG).await;
    read_b.refused(&other).await;
    write_b.refused(&other).await;
    write_a.give_back(&writer).await;
    held_by(&write_b, &[&writer], "after the writer went on as a reader").await;
    write_b.refused(&ctx.owner()).await;
    read_b.take(&other, LONG).await;
    held_by(&write_a, &[&writer, &other], "a former writer and a reader").await;
    let again = write_a.release(&writer).await;
    Rule::Ownership.check(
        again == ReleaseOutcome::NotHeld,
        "the write lock was released twice",
    );
    read_a.give_back(&writer).await;
    held_by(&write_a, &[&other], "after the former writer's release").await;
    read_b.give_back(&other).await;
}

/// When a writer releases, the readers at the head of the queue enter together, up to the next
/// writer.
pub async fn waiting_readers_go_together(ctx: Ctx) {
    let ((read_a, write_a), (read_b, write_b)) = (halves(&ctx, 0).await, halves(&ctx, 1).await);
    let holder = ctx.owner();
    write_a.take(&holder, LONG).await;
    let mut readers = Vec::new();
    for lock in [&read_a, &read_b, &read_b] {
        readers.push(Waiter::join(lock, &ctx.owner()).await);
    }
    let mut writer = Waiter::join(&write_b, &ctx.owner()).await;
    let mut late = Waiter::join(&read_a, &ctx.owner()).await;
    write_a.give_back(&holder).await;
    for reader in &mut readers {
        reader.handed().await;
    }
    let together: Vec<_> = readers.iter().map(Waiter::owner).collect();
    held_by(&write_a, &together, "three readers waited before a writer").await;
    let waiting = (writer.position().await, late.position().await);
    Rule::ReadWrite.check(
        waiting == (Some(0), Some(1)),
        format_args!("a writer and a reader behind it are shown at {waiting:?}"),
    );
    for reader in &readers {
        reader.gives_back().await;
    }
    writer.handed().await;
    held_by(&read_b, &[writer.owner()], "the writer's turn").await;
    writer.gives_back().await;
    late.handed().await;
    late.gives_back().await;
}

/// Readers that come after a waiting writer wait for it, although other readers hold the lock.
pub async fn a_waiting_writer_holds_back_readers(ctx: Ctx) {
    let ((read_a, write_a), (read_b, write_b)) = (halves(&ctx, 0).await, halves(&ctx, 1).await);
    let reader = ctx.owner();
    read_a.take(&reader, LONG).await;
    let mut writer = Waiter::join(&write_b, &ctx.owner()).await;
    read_a.refused(&ctx.owner()).await;
    read_b.refused(&ctx.owner()).await;
    let mut late = Waiter::join(&read_b, &ctx.owner()).await;
    Rule::Queue.check(
        late.ahead == 1,
        format_args!("behind a writer {} are said to be ahead", late.ahead),
    );
    // The present reader may repeat its attempt.
    read_a.take(&reader, LONG).await;
    read_a.give_back(&reader).await;
    writer.handed().await;
    held_by(&write_a, &[writer.owner()], "a writer that waited").await;
    Rule::Queue.check(
        late.position().await == Some(0),
        "the reader behind a writer lost its place",
    );
    writer.gives_back().await;
    late.handed().await;
    late.gives_back().await;
}

/// When a waiting writer gives up, the readers behind it join the present ones.
pub async fn a_writer_that_goes_lets_readers_in(ctx: Ctx) {
    let ((read_a, write_a), (read_b, write_b)) = (halves(&ctx, 0).await, halves(&ctx, 1).await);
    let reader = ctx.owner();
    read_a.take(&reader, LONG).await;
    let writer = Waiter::join(&write_b, &ctx.owner()).await;
    let mut one = Waiter::join(&read_b, &ctx.owner()).await;
    let mut two = Waiter::join(&read_a, &ctx.owner()).await;
    let _ = writer.leaves().await;
    one.handed().await;
    two.handed().await;
    let all = [&reader, one.owner(), two.owner()];
    held_by(&write_a, &all, "after a waiting writer gave up").await;
    one.gives_back().await;
    two.gives_back().await;
    read_b.give_back(&reader).await;
}

/// Former holders of either half learn that it is gone, or another owner's.
pub async fn the_gone_are_told(ctx: Ctx) {
    let short = ctx.short();
    let ((read, write), (read_b, write_b)) = (halves(&ctx, 0).await, halves(&ctx, 1).await);
    let (gone, now) = (ctx.owner(), ctx.owner());
    for lock in [&read, &write] {
        lock.take(&gone, short).await;
        until(Rule::Lease, short, "a lease does not end", || async {
            lock.state().await.holder().is_none()
        })
        .await;
        told(lock, &gone, &[ExtendOutcome::Missing], "nobody holds it").await;
    }
    let either = [ExtendOutcome::Missing, ExtendOutcome::TakenOver];
    write_b.take(&now, LONG).await;
    told(
        &write,
        &gone,
        &[ExtendOutcome::TakenOver],
        "a writer has it",
    )
    .await;
    told(&read, &gone, &either, "a writer has it").await;
    write_b.give_back(&now).await;
    read_b.take(&now, LONG).await;
    told(
        &write,
        &gone,
        &[ExtendOutcome::TakenOver],
        "a reader has it",
    )
    .await;
    told(&read, &gone, &either, "another reader has it").await;
    held_by(&read_b, &[&now], "after extensions of former holders").await;
    read_b.give_back(&now).await;
}

async fn told(lock: &Client, gone: &OwnerId, expected: &[ExtendOutcome], now: &str) {
    let extended = lock.extend(gone, LONG).await;
    Rule::Ownership.check(
        expected.contains(&extended),
        format_args!(
            "a former holder of {} extended and was answered {extended:?}, and {now}",
            lock.target.kind().as_str()
        ),
    );
    let released = lock.release(gone).await;
    Rule::Ownership.check(
        released == ReleaseOutcome::NotHeld,
        "a former holder's release was answered Released",
    );
}

/// Tries until granted.
pub(super) async fn eventually(lock: &Client, owner: &OwnerId, within: std::time::Duration) {
    until(
        Rule::Lease,
        within,
        "the lock does not become free",
        || async {
            matches!(
                lock.attempt(owner, LONG).await,
                AttemptOutcome::Granted { .. }
            )
        },
    )
    .await;
}
