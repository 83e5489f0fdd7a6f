//! Exact results of scripts, to the millisecond and to the number, each in the one situation that
//! shows it. Random schedules reach these too seldom, or cannot tell a little too early from in
//! time.
#![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

#[path = "precise_common/mod.rs"]
mod common;

use std::slice::from_ref;
use std::time::Duration;

use common::{Lock, held_for, is_granted, kinds};
use locktopus_core::{AttemptOutcome, ExtendOutcome, LockKind, OwnerId, ReleaseOutcome};
use locktopus_protocol::{RedisClient as _, Reply, Route};

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// The longest time after which a lease of a minute is still held: a server keeps a key during its
/// last millisecond, but not permits.
fn last_moment(kind: &LockKind) -> Duration {
    match kind {
        LockKind::Semaphore | LockKind::PermitSemaphore => MINUTE - MILLISECOND,
        _ => MINUTE,
    }
}

/// The server's clock need not advance between two grants.
#[tokio::test(start_paused = true)]
async fn each_token_is_greater_though_the_clock_stands_still() {
    for kind in kinds().into_iter().filter(LockKind::has_tokens) {
        let lock = Lock::of(kind.clone()).await;
        let mut last = None;
        // Also after a set of tokens, and with the clock set back behind them.
        for (tokens, back) in [(1, 0), (1, 0), (16, 0), (1, 0), (1, 5), (16, 0), (1, 0)] {
            lock.client.server().clock -= back;
            let owner = kind.new_owner();
            let token = lock.take_with(&owner, MINUTE, tokens).await.unwrap();
            assert!(last < Some(token), "{kind:?}: {token} after {last:?}");
            last = Some(token + u64::from(tokens) - 1);
            let released = lock.release(&owner).await;
            assert_eq!(released, ReleaseOutcome::Released, "{kind:?}");
        }
    }
}

/// A handed-on lock is a grant of its own.
#[tokio::test(start_paused = true)]
async fn each_token_that_is_handed_on_is_greater_though_the_clock_stands_still() {
    let kinds = kinds().into_iter().filter(LockKind::has_tokens);
    // One microsecond in sixteen takes the long way.
    for (kind, later) in kinds.flat_map(|kind| [0, 1].map(|later| (kind.clone(), later))) {
        let lock = Lock::of(kind.clone()).await;
        lock.client.server().clock += later;
        let _heard = lock.listen().await;
        let (first, second) = (kind.new_owner(), kind.new_owner());
        let before = lock.take(&first, MINUTE).await.unwrap();
        lock.wait(&second, MINUTE, MINUTE).await;
        let released = lock.release(&first).await;
        assert_eq!(released, ReleaseOutcome::Released, "{kind:?}");
        assert_eq!(lock.holders().await, from_ref(&second), "{kind:?}");
        let again = lock.take(&second, MINUTE).await.unwrap();
        assert!(before < again, "{kind:?}: {again} after {before}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_extension_never_shortens_and_lengthens_to_the_millisecond() {
    for kind in kinds() {
        for (first, then, left) in [
            (MINUTE, 10 * SECOND, MINUTE),
            (10 * SECOND, MINUTE, MINUTE),
            (MINUTE, MINUTE + MILLISECOND, MINUTE + MILLISECOND),
        ] {
            let lock = Lock::of(kind.clone()).await;
            let (owner, other) = (kind.new_owner(), kind.new_owner());
            lock.take(&owner, first).await;
            let extended = lock.extend(&owner, then).await;
            assert_eq!(extended, ExtendOutcome::Extended, "{kind:?}");
            let blocked = held_for(&lock.attempt(&other, MINUTE).await);
            assert_eq!(blocked, Some(left), "{kind:?}: {first:?}, then {then:?}");
            // The same for a repeated attempt.
            let lock = Lock::of(kind.clone()).await;
            lock.take(&owner, first).await;
            lock.take(&owner, then).await;
            let blocked = held_for(&lock.attempt(&other, MINUTE).await);
            assert_eq!(blocked, Some(left), "{kind:?}: {first:?}, again {then:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_ends_to_the_millisecond() {
    for kind in kinds() {
        let last = last_moment(&kind);
        let lock = Lock::of(kind.clone()).await;
        let (owner, other) = (kind.new_owner(), kind.new_owner());
        lock.take(&owner, MINUTE).await;
        lock.pass(last);
        let blocked = lock.attempt(&other, MINUTE).await;
        assert_eq!(held_for(&blocked), Some(MINUTE - last), "{kind:?}");
        lock.pass(MILLISECOND);
        let granted = lock.attempt(&other, MINUTE).await;
        assert!(is_granted(&granted), "{kind:?}: {granted:?}");
        let released = lock.release(&owner).await;
        assert_eq!(released, ReleaseOutcome::NotHeld, "{kind:?}");
        assert_eq!(lock.holders().await, from_ref(&other), "{kind:?}");
    }
}

/// Deadlines of permits are whole milliseconds, unlike a server's clock. A permit is never free
/// before its lease is over, whatever microsecond it began in, and all scripts agree on when it
/// ends.
#[tokio::test(start_paused = true)]
async fn permits_end_at_one_moment_for_every_script() {
    for kind in [LockKind::Semaphore, LockKind::PermitSemaphore] {
        for begun in [0, 1, 400, 500, 600, 999] {
            for beyond in (-1..11).map(|tenth| tenth * 100) {
                for way in ["taken", "taken again", "extended"] {
                    let case = format!("{kind:?} {way} at {begun} us, {beyond} us beyond");
                    permits_end_at_one_moment(&kind, begun, beyond, way, &case).await;
                }
            }
        }
    }
}

async fn permits_end_at_one_moment(
    kind: &LockKind,
    begun: i64,
    beyond: i64,
    way: &str,
    case: &str,
) {
    // The extension, if it finds the lease, and the attempt, if it does not, both change it. So
    // each has its own lock.
    for extends in [false, true] {
        let lock = Lock::of(kind.clone()).await;
        let owner = kind.new_owner();
        let second = lock.client.server().clock / 1_000_000 + 1;
        lock.client.server().clock = second * 1_000_000 + begun;
        if way != "taken" {
            lock.take(&owner, SECOND).await;
        }
        if way == "extended" {
            let extension = lock.extend(&owner, MINUTE).await;
            assert_eq!(extension, ExtendOutcome::Extended, "{case}");
        } else {
            lock.take(&owner, MINUTE).await;
        }
        lock.client.server().clock += 60_000_000 + beyond;
        let shown = lock.inspect().await;
        let held = shown.holder().is_some();
        assert!(held || beyond >= 0, "{case}: ended too early");
        assert!(!held || beyond < 1_000, "{case}: ended too late");
        let free = Some(i64::from(!held));
        assert_eq!(lock.free_permits().await, free, "{case}: read");
        assert_eq!(shown.available, free, "{case}: inspected");
        let finds_it = if extends {
            lock.extend(&owner, MINUTE).await == ExtendOutcome::Extended
        } else {
            held_for(&lock.attempt_only(&kind.new_owner()).await).is_some()
        };
        assert_eq!(finds_it, held, "{case}: extends {extends}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_has_ended_is_not_revived() {
    for kind in kinds() {
        let last = last_moment(&kind);
        let lock = Lock::of(kind.clone()).await;
        let owner = kind.new_owner();
        lock.take(&owner, MINUTE).await;
        lock.pass(last);
        let extended = lock.extend(&owner, MINUTE).await;
        assert_eq!(extended, ExtendOutcome::Extended, "{kind:?}");
        lock.pass(last + MILLISECOND);
        let extended = lock.extend(&owner, MINUTE).await;
        assert_eq!(extended, ExtendOutcome::Missing, "{kind:?}");
        let granted = lock.attempt(&kind.new_owner(), MINUTE).await;
        assert!(is_granted(&granted), "{kind:?}: {granted:?}");
    }
}

/// The remaining time is that of the remaining readers, and nothing of the others stays.
#[tokio::test(start_paused = true)]
async fn a_reader_that_leaves_takes_its_expiry_along() {
    let lock = Lock::of(LockKind::Read).await;
    let writer = LockKind::Write.new_owner();
    let readers = [60, 10, 30].map(|seconds| (LockKind::Read.new_owner(), SECOND * seconds));
    for (reader, lease) in &readers {
        lock.take(reader, *lease).await;
    }
    for (gone, left) in [(0, Some(30)), (1, Some(30)), (2, None)] {
        let (reader, _) = &readers[gone];
        assert_eq!(lock.release(reader).await, ReleaseOutcome::Released);
        let writing = lock.as_kind(LockKind::Write);
        let blocked = held_for(&writing.attempt_only(&writer).await);
        assert_eq!(blocked, left.map(|seconds| SECOND * seconds), "{gone}");
        let dump = lock.client.server().dump();
        let kept = String::from_utf8_lossy(reader.expose()).into_owned();
        assert!(!dump.contains(&kept), "{kept} left, but:\n{dump}");
        if left.is_none() {
            assert_eq!(writing.release(&writer).await, ReleaseOutcome::Released);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_leaves_remains_a_reader() {
    let lock = Lock::of(LockKind::Write).await;
    let reading = lock.as_kind(LockKind::Read);
    let owner = LockKind::Write.new_owner();
    lock.take(&owner, MINUTE).await;
    reading.take(&owner, MINUTE).await;
    assert_eq!(lock.release(&owner).await, ReleaseOutcome::Released);
    let blocked = lock.attempt_only(&LockKind::Write.new_owner()).await;
    assert_eq!(held_for(&blocked), Some(MINUTE), "its reader is gone");
    let another = LockKind::Read.new_owner();
    reading.take(&another, MINUTE).await;
    let extended = reading.extend(&owner, MINUTE).await;
    assert_eq!(extended, ExtendOutcome::Extended);
    assert_eq!(reading.release(&owner).await, ReleaseOutcome::Released);
    let blocked = lock.attempt_only(&LockKind::Write.new_owner()).await;
    assert_eq!(held_for(&blocked), Some(MINUTE), "the other reader is gone");
}

/// An expired lease is not announced, so the first waiter to poll also lets in those that fit
/// beside it.
#[tokio::test(start_paused = true)]
async fn whoever_takes_its_turn_by_itself_lets_in_those_behind() {
    for kind in [
        LockKind::Read,
        LockKind::Semaphore,
        LockKind::PermitSemaphore,
    ] {
        let lock = Lock::of_many(kind.clone(), 3).await;
        let blocking = match kind {
            LockKind::Read => lock.as_kind(LockKind::Write),
            _ => lock.as_kind(kind.clone()),
        };
        let _heard = lock.listen().await;
        let holder = blocking.target.kind().new_owner();
        blocking.take_permits(&holder, MINUTE, 3).await;
        let waiters = [(); 3].map(|()| kind.new_owner());
        for waiter in &waiters {
            lock.wait(waiter, MINUTE, 2 * MINUTE).await;
        }
        lock.pass(MINUTE + MILLISECOND);
        lock.wait_or_take(&waiters[0], MINUTE).await;
        let holders = lock.holders().await;
        let left = waiters.iter().find(|waiter| !holders.contains(waiter));
        assert_eq!(left, None, "{kind:?}: somebody was left waiting");
    }
}

/// The epoch in the record of the quarantine.
async fn recorded(lock: &Lock) -> Option<u64> {
    let epoch = [&b"HGET"[..], b"locktopus_history", b"epoch"];
    match lock.client.command(Route::Any, &epoch).await.unwrap() {
        Reply::Bytes(epoch) => Some(String::from_utf8_lossy(&epoch).parse().unwrap()),
        _ => None,
    }
}

/// The lock has no holder. Returns how long it is not granted to anybody.
async fn is_held_back(lock: &Lock) -> Option<Duration> {
    let owner = OwnerId::generate();
    let outcome = lock.attempt(&owner, SECOND).await;
    if let AttemptOutcome::Granted { .. } = outcome {
        assert_eq!(lock.release(&owner).await, ReleaseOutcome::Released);
        return None;
    }
    let remaining = held_for(&outcome);
    assert!(remaining.is_some(), "{outcome:?}");
    remaining
}

/// A server that sentinels promoted again, as it was, has a later epoch than the one on record.
#[tokio::test(start_paused = true)]
async fn who_is_promoted_again_holds_back_for_the_longest_lease() {
    let lock = Lock::quarantined(MINUTE, None).await;
    assert_eq!(is_held_back(&lock).await, None);
    assert_eq!(recorded(&lock).await, None);
    // The first reported epoch is not a later one, nor is the same one, nor an older one that a
    // client still reports.
    for (heard, known) in [(9, 9), (9, 9), (8, 9)] {
        lock.client.hear_epoch(Some(heard));
        assert_eq!(is_held_back(&lock).await, None, "{heard}");
        assert_eq!(recorded(&lock).await, Some(known), "{heard}");
    }
    // They compare as numbers, not as text.
    lock.client.hear_epoch(Some(10));
    assert_eq!(is_held_back(&lock).await, Some(MINUTE));
    assert_eq!(recorded(&lock).await, Some(10));
    lock.pass(SECOND);
    // The quarantine begins only once.
    for heard in [Some(10), Some(9), None] {
        lock.client.hear_epoch(heard);
        assert_eq!(is_held_back(&lock).await, Some(MINUTE - SECOND));
        assert_eq!(recorded(&lock).await, Some(10));
    }
    lock.pass(MINUTE - SECOND - MILLISECOND);
    assert_eq!(is_held_back(&lock).await, Some(MILLISECOND));
    lock.pass(MILLISECOND);
    assert_eq!(is_held_back(&lock).await, None);
    // Another server with other sentinels, which count anew.
    lock.client.server().replid = "1".repeat(40);
    lock.client.hear_epoch(Some(2));
    assert_eq!(is_held_back(&lock).await, Some(MINUTE));
    assert_eq!(recorded(&lock).await, Some(2));
}

/// A client that has seen the server since its last promotion vouches for that time. One that saw
/// it before does not.
#[tokio::test(start_paused = true)]
async fn nobody_vouches_for_a_time_before_it_was_promoted_again() {
    let lock = Lock::quarantined(MINUTE, Some(1)).await;
    assert_eq!(is_held_back(&lock).await, None);
    tokio::time::sleep(MINUTE * 2).await;
    lock.client.hear_epoch(Some(3));
    assert_eq!(is_held_back(&lock).await, Some(MINUTE));
    tokio::time::sleep(MINUTE * 2).await;
    assert_eq!(is_held_back(&lock).await, None);
    assert_eq!(recorded(&lock).await, Some(3));
}

/// Nor does a client that has not heard of the promotion, or whose request was under way for so
/// long.
#[tokio::test(start_paused = true)]
async fn who_knows_of_an_earlier_epoch_only_does_not_vouch() {
    let held_back = Some(MINUTE);
    // A client that knows no epoch vouches only if there was no failover yet.
    let cases = [
        (Some(2), "3", held_back),
        (None, "3", held_back),
        (None, "1", held_back),
        (None, "0", None),
    ];
    for (heard, epoch, held_back) in cases {
        let lock = Lock::quarantined(MINUTE, heard).await;
        tokio::time::sleep(MINUTE * 2).await;
        assert_eq!(is_held_back(&lock).await, None, "{heard:?}");
        // Another client has heard of it and begun the quarantine, and the clock was set back
        // since.
        let until = lock.client.server().clock / 1_000 + 90_000;
        let until = until.to_string();
        let words = ["HSET", "locktopus_history", "epoch", epoch, "until", &until];
        let words = words.map(str::as_bytes);
        lock.client.command(Route::Any, &words).await.unwrap();
        assert_eq!(is_held_back(&lock).await, held_back, "{heard:?}, {epoch}");
    }
}
