//! A writer that also reads: each half has its own lease, extension and release.

use std::time::Duration;

use locktopus_core::{ExtendOutcome, OwnerId, ReleaseOutcome};
use tokio::time::Instant;

use super::rw::{eventually, halves, held_by};
use crate::client::Client;
use crate::ctx::Ctx;
use crate::rule::Rule;
use crate::timing::{LONG, ROUNDING, until};
use crate::waiter::Waiter;

/// Acquires both halves for one owner, each with its own lease. Returns when it requested the write
/// half.
async fn both(
    (read, write): (&Client, &Client),
    owner: &OwnerId,
    [writing, reading]: [Duration; 2],
) -> Instant {
    let sent = Instant::now();
    write.take(owner, writing).await;
    read.take(owner, reading).await;
    sent
}

fn not_before(sent: Instant, lease: Duration, what: &str) {
    let lasted = sent.elapsed();
    Rule::Lease.check(
        lasted + ROUNDING >= lease,
        format_args!("{what} {lasted:?} after a lease of {lease:?} began"),
    );
}

/// Waits until a half no longer shows as held.
async fn ends(half: &Client, owner: &OwnerId, within: Duration) {
    let mode = half.target.kind().mode();
    until(
        Rule::Lease,
        within,
        "one half of a read-write lock does not end while the other lasts",
        || async {
            let holders = half.state().await.holders;
            !holders
                .iter()
                .any(|holder| holder.owner == *owner && holder.mode == mode)
        },
    )
    .await;
}

/// When the write lease ends, other readers get in, although the owner still reads.
pub async fn writing_ends_while_reading_goes_on(ctx: Ctx) {
    let short = ctx.short();
    let ((read_a, write_a), (read_b, write_b)) = (halves(&ctx, 0).await, halves(&ctx, 1).await);
    let (me, other) = (ctx.owner(), ctx.owner());
    let sent = both((&read_a, &write_a), &me, [short, LONG]).await;
    let in_the_way = read_b.refused(&other).await;
    Rule::Lease.check(
        in_the_way.is_some_and(|left| left <= short + ROUNDING),
        format_args!("a reader behind a write lease of {short:?} is told to wait {in_the_way:?}"),
    );
    // Extends the read lease, as the watchdog does.
    let extended = read_a.extend(&me, LONG).await;
    Rule::Ownership.check(
        extended == ExtendOutcome::Extended,
        format_args!("the reading of a writer was extended and answered {extended:?}"),
    );
    ctx.waits_for_leases();
    eventually(&read_b, &other, short).await;
    not_before(sent, short, "a reader got in");
    held_by(&write_b, &[&me, &other], "after the write lease ended").await;
    write_b.refused(&ctx.owner()).await;
    let extended = write_a.extend(&me, LONG).await;
    Rule::Ownership.check(
        extended == ExtendOutcome::TakenOver,
        format_args!("a write lease that had ended was extended and answered {extended:?}"),
    );
    let released = write_a.release(&me).await;
    Rule::Ownership.check(
        released == ReleaseOutcome::NotHeld,
        "a write lease that had ended was released",
    );
    let extended = read_a.extend(&me, LONG).await;
    Rule::Ownership.check(
        extended == ExtendOutcome::Extended,
        format_args!("a former writer's reading was extended and answered {extended:?}"),
    );
    read_a.give_back(&me).await;
    read_b.give_back(&other).await;
    write_b.take(&ctx.owner(), LONG).await;
}

/// When only the read lease ends, the owner still writes, alone, and its release frees the lock.
pub async fn reading_ends_while_writing_goes_on(ctx: Ctx) {
    let short = ctx.short();
    let ((read_a, write_a), (read_b, write_b)) = (halves(&ctx, 0).await, halves(&ctx, 1).await);
    let (me, next) = (ctx.owner(), ctx.owner());
    both((&read_a, &write_a), &me, [LONG, short]).await;
    ends(&read_b, &me, short).await;
    held_by(&write_b, &[&me], "after the read lease ended").await;
    read_b.refused(&ctx.owner()).await;
    let released = read_a.release(&me).await;
    Rule::Ownership.check(
        released == ReleaseOutcome::NotHeld,
        "a writer's read lease that had ended was released",
    );
    // It may read once more.
    read_a.take(&me, short).await;
    ends(&read_b, &me, short).await;
    write_a.give_back(&me).await;
    write_b.take(&next, LONG).await;
    write_b.give_back(&next).await;
}

/// An owner that stops writing keeps others out only while it reads.
pub async fn who_stops_writing_holds_for_its_reading(ctx: Ctx) {
    let short = ctx.short();
    let ((read_a, write_a), (_, write_b)) = (halves(&ctx, 0).await, halves(&ctx, 1).await);
    let me = ctx.owner();
    write_a.take(&me, LONG).await;
    let sent = Instant::now();
    read_a.take(&me, short).await;
    write_a.give_back(&me).await;
    ctx.waits_for_leases();
    eventually(&write_b, &ctx.owner(), short).await;
    not_before(sent, short, "a writer got in");
}

/// An owner that stops reading keeps others out only while it writes.
pub async fn who_stops_reading_holds_for_its_writing(ctx: Ctx) {
    let short = ctx.short();
    let ((read_a, write_a), (read_b, write_b)) = (halves(&ctx, 0).await, halves(&ctx, 1).await);
    for waits in [false, true] {
        let me = ctx.owner();
        let sent = both((&read_a, &write_a), &me, [short, LONG]).await;
        if waits {
            // Its write lease ends before it stops reading.
            ends(&write_b, &me, short).await;
            read_a.give_back(&me).await;
            write_b.take(&me, LONG).await;
            write_b.give_back(&me).await;
            continue;
        }
        read_a.give_back(&me).await;
        ctx.waits_for_leases();
        let other = ctx.owner();
        eventually(&read_b, &other, short).await;
        not_before(sent, short, "a reader got in");
        read_b.give_back(&other).await;
    }
}

/// An extension of one half leaves the end of the other.
pub async fn each_half_is_extended_alone(ctx: Ctx) {
    let short = ctx.short();
    let ((read_a, write_a), (read_b, write_b)) = (halves(&ctx, 0).await, halves(&ctx, 1).await);
    for (kept, left) in [(&write_a, &read_b), (&read_a, &write_b)] {
        let me = ctx.owner();
        both((&read_a, &write_a), &me, [short * 2; 2]).await;
        let extended = kept.extend(&me, LONG).await;
        Rule::Ownership.check(
            extended == ExtendOutcome::Extended,
            format_args!(
                "the {} half was extended and answered {extended:?}",
                kept.target.kind().as_str()
            ),
        );
        ends(left, &me, short * 2).await;
        held_by(left, &[&me], "after one of two halves").await;
        let shown = kept.remaining(&me).await;
        Rule::Lease.check(
            shown > short * 3,
            format_args!("of a half extended to {LONG:?}, {shown:?} is left"),
        );
        kept.give_back(&me).await;
        held_by(left, &[], "after the release of the half that was left").await;
    }
}

/// Readers that wait for a writer get in together when its write lease ends, although it still
/// reads.
pub async fn waiting_readers_get_in_when_writing_ends(ctx: Ctx) {
    let short = ctx.short();
    let slack = ctx.slack();
    let ((read_a, write_a), (read_b, write_b)) = (halves(&ctx, 0).await, halves(&ctx, 1).await);
    let me = ctx.owner();
    let sent = both((&read_a, &write_a), &me, [short, LONG]).await;
    let mut first = Waiter::join(&read_b, &ctx.owner()).await;
    let mut second = Waiter::join(&read_a, &ctx.owner()).await;
    ctx.waits_for_leases();
    while first.repeat().await.is_none() {
        Rule::Lease.check(
            sent.elapsed() < short + slack,
            "a waiting reader does not get in after the write lease",
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    not_before(sent, short, "a reader got in");
    second.handed().await;
    let all = [&me, first.owner(), second.owner()];
    held_by(&write_b, &all, "after the write lease").await;
    first.gives_back().await;
    second.gives_back().await;
    read_a.give_back(&me).await;
}
