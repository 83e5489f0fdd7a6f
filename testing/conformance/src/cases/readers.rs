//! Each reader's hold is its own: its lease, its release, its extension.

use std::time::Duration;

use locktopus_core::{ExtendOutcome, ReleaseOutcome};
use tokio::time::Instant;

use super::rw::{eventually, halves, held_by};
use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::{LONG, ROUNDING, until};
use crate::waiter::Waiter;

/// One reader's lease ends while another's continues, in either order of arrival.
pub async fn each_reader_has_its_own_end(ctx: Ctx) {
    let short = ctx.short();
    let ((read, write), (read_b, _)) = (halves(&ctx, 0).await, halves(&ctx, 1).await);
    let (brief, lasting, late) = (ctx.owner(), ctx.owner(), ctx.owner());
    read.take(&brief, short).await;
    read_b.take(&lasting, LONG).await;
    read_b.take(&late, short).await;
    until(
        Rule::Lease,
        short,
        "a reader's lease does not end while another one's lasts",
        || async { !read.is_held_by(&brief).await && !read.is_held_by(&late).await },
    )
    .await;
    held_by(&write, &[&lasting], "after two of three leases").await;
    for gone in [&brief, &late] {
        let extended = read.extend(gone, LONG).await;
        Rule::Ownership.check(
            extended != ExtendOutcome::Extended,
            "a reader extended a lease that had ended",
        );
        let released = read.release(gone).await;
        Rule::Ownership.check(
            released == ReleaseOutcome::NotHeld,
            "a reader's lease that had ended was released",
        );
    }
    write.refused(&ctx.owner()).await;
    read.give_back(&lasting).await;
    let writer = ctx.owner();
    write.take(&writer, LONG).await;
    write.give_back(&writer).await;
}

/// A writer gets in soon after the last reader's lease has ended, and not before.
pub async fn a_writer_waits_for_the_last_reader(ctx: Ctx) {
    let short = ctx.short();
    let slack = ctx.slack();
    let ((read, _), (_, write)) = (halves(&ctx, 0).await, halves(&ctx, 1).await);
    read.take(&ctx.owner(), short / 2).await;
    let sent = Instant::now();
    read.take(&ctx.owner(), short).await;
    read.take(&ctx.owner(), short / 4).await;
    let mut writer = Waiter::join(&write, &ctx.owner()).await;
    ctx.waits_for_leases();
    while writer.repeat().await.is_none() {
        Rule::Lease.check(
            sent.elapsed() < short + slack,
            "a writer does not get in after the last reader's lease",
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let lasted = sent.elapsed();
    Rule::Lease.check(
        lasted + ROUNDING >= short,
        format_args!("a writer got in {lasted:?} after a reader's lease of {short:?} began"),
    );
    writer.gives_back().await;
}

/// A reader's repeated release ends no other hold.
pub async fn a_reader_is_released_once(ctx: Ctx) {
    let ((read, write), (read_b, _)) = (halves(&ctx, 0).await, halves(&ctx, 1).await);
    let (one, two) = (ctx.owner(), ctx.owner());
    read.take(&one, LONG).await;
    read_b.take(&two, LONG).await;
    read.give_back(&one).await;
    for lock in [&read, &read_b] {
        let again = lock.release(&one).await;
        Rule::Idempotence.check(
            again == ReleaseOutcome::NotHeld,
            "a reader's repeated release was answered Released",
        );
    }
    held_by(&write, &[&two], "after a repeated release of the other").await;
    write.refused(&ctx.owner()).await;
    read_b.give_back(&two).await;
    let writer = ctx.owner();
    write.take(&writer, LONG).await;
    write.give_back(&writer).await;
}

/// A reader's repeated attempt is the same hold, and one release ends it.
pub async fn a_repeated_reader_is_one_reader(ctx: Ctx) {
    let ((read, write), (read_b, _)) = (halves(&ctx, 0).await, halves(&ctx, 1).await);
    let (one, two) = (ctx.owner(), ctx.owner());
    read_b.take(&two, LONG).await;
    for lock in [&read, &read_b, &read] {
        lock.take(&one, LONG).await;
    }
    held_by(&write, &[&one, &two], "two readers, one repeated").await;
    let holds: Vec<_> = read.state().await.holders.iter().map(|h| h.holds).collect();
    Rule::Idempotence.check(
        holds == [1, 1],
        format_args!("two readers are shown with {holds:?} holds"),
    );
    read.give_back(&one).await;
    held_by(&write, &[&two], "after one release of a repeated reader").await;
    read.give_back(&two).await;
    held_by(&write, &[], "after both releases").await;
}

/// An extension applies to one reader's lease, which outlasts the original one.
pub async fn an_extension_is_for_one_reader(ctx: Ctx) {
    let short = ctx.short();
    let ((read, write), (read_b, _)) = (halves(&ctx, 0).await, halves(&ctx, 1).await);
    let (extended, left) = (ctx.owner(), ctx.owner());
    read_b.take(&left, short * 2).await;
    read.take(&extended, short * 2).await;
    let outcome = read.extend(&extended, LONG).await;
    Rule::Ownership.check(
        outcome == ExtendOutcome::Extended,
        format_args!("a reader's extension was answered {outcome:?}"),
    );
    until(
        Rule::Lease,
        short * 2,
        "a reader's lease does not end after another one's was extended",
        || async { !read.is_held_by(&left).await },
    )
    .await;
    held_by(&write, &[&extended], "after the other reader's lease").await;
    let shown = read_b.holder(&extended).await.remaining;
    Rule::Lease.check(
        shown.is_some_and(|shown| shown > short * 3 && shown <= LONG + ROUNDING),
        format_args!("of a reader's lease extended to {LONG:?}, {shown:?} is shown"),
    );
    // A shorter one changes nothing.
    let outcome = read_b.extend(&extended, short / 4).await;
    Rule::Ownership.check(
        outcome == ExtendOutcome::Extended && read.remaining(&extended).await > short * 3,
        "an extension shortened a reader's lease",
    );
    read.give_back(&extended).await;
    let writer = ctx.owner();
    eventually(&write, &writer, short).await;
    write.give_back(&writer).await;
}
