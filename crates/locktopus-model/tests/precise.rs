//! What scripts do to the millisecond and to the number, each in the one situation in which it shows: random schedules come
//! into these too seldom, or cannot tell a little too early from in time.
#![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

#[path = "precise_common/mod.rs"]
mod common;

use std::time::Duration;

use common::{Lock, held_for, kinds};
use locktopus_core::{AttemptOutcome, ExtendOutcome, LockKind, ReleaseOutcome};

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// The longest time after which a lease of a minute is still held: a server keeps a key during its last millisecond, and
/// permits do not need one.
fn last_moment(kind: &LockKind) -> Duration {
    match kind {
        LockKind::Semaphore | LockKind::Permits => MINUTE - MILLISECOND,
        _ => MINUTE,
    }
}

/// The server's clock does not have to go on between two grants.
#[tokio::test(start_paused = true)]
async fn each_token_is_greater_though_the_clock_stands_still() {
    for kind in kinds().into_iter().filter(LockKind::has_tokens) {
        let lock = Lock::of(kind.clone()).await;
        let mut last = None;
        // Also after a set of tokens, and with a clock that was set back behind them.
        for (tokens, back) in [(1, 0), (1, 0), (16, 0), (1, 0), (1, 5), (16, 0), (1, 0)] {
            lock.client.server().clock -= back;
            let owner = kind.new_owner();
            let token = lock.take_with(&owner, MINUTE, tokens).await.unwrap();
            assert!(last < Some(token), "{kind:?}: {token} after {last:?}");
            last = Some(token + u64::from(tokens) - 1);
            assert_eq!(
                lock.release(&owner).await,
                ReleaseOutcome::Released,
                "{kind:?}"
            );
        }
    }
}

/// A grant that is handed on is one more.
#[tokio::test(start_paused = true)]
async fn each_token_that_is_handed_on_is_greater_though_the_clock_stands_still() {
    let kinds = kinds().into_iter().filter(LockKind::has_tokens);
    // One in sixteen microseconds goes another way.
    for (kind, later) in kinds.flat_map(|kind| [0, 1].map(|later| (kind.clone(), later))) {
        let lock = Lock::of(kind.clone()).await;
        lock.client.server().clock += later;
        let _heard = lock.listen().await;
        let (first, second) = (kind.new_owner(), kind.new_owner());
        let before = lock.take(&first, MINUTE).await.unwrap();
        lock.wait(&second, MINUTE, MINUTE).await;
        assert_eq!(
            lock.release(&first).await,
            ReleaseOutcome::Released,
            "{kind:?}"
        );
        let state = lock.inspect().await;
        assert!(
            state
                .holders
                .iter()
                .map(|holder| &holder.owner)
                .eq([&second]),
            "{kind:?}: {state:?}"
        );
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
            let blocked = lock.attempt(&other, MINUTE).await;
            assert_eq!(
                held_for(&blocked),
                Some(left),
                "{kind:?}: {first:?}, then {then:?}"
            );
            // So does an attempt that is repeated.
            let lock = Lock::of(kind.clone()).await;
            lock.take(&owner, first).await;
            lock.take(&owner, then).await;
            let blocked = lock.attempt(&other, MINUTE).await;
            assert_eq!(
                held_for(&blocked),
                Some(left),
                "{kind:?}: {first:?}, again {then:?}"
            );
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
        assert!(
            matches!(granted, AttemptOutcome::Granted { .. }),
            "{kind:?}: {granted:?}"
        );
        assert_eq!(
            lock.release(&owner).await,
            ReleaseOutcome::NotHeld,
            "{kind:?}"
        );
        let state = lock.inspect().await;
        assert!(
            state
                .holders
                .iter()
                .map(|holder| &holder.owner)
                .eq([&other]),
            "{kind:?}: {state:?}"
        );
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
        assert_eq!(
            lock.extend(&owner, MINUTE).await,
            ExtendOutcome::Extended,
            "{kind:?}"
        );
        lock.pass(last + MILLISECOND);
        assert_eq!(
            lock.extend(&owner, MINUTE).await,
            ExtendOutcome::Missing,
            "{kind:?}"
        );
        let granted = lock.attempt(&kind.new_owner(), MINUTE).await;
        assert!(
            matches!(granted, AttemptOutcome::Granted { .. }),
            "{kind:?}: {granted:?}"
        );
    }
}

/// What is left counts from the readers that are left, and nothing of the others stays.
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
        let blocked = lock.as_kind(LockKind::Write).attempt_only(&writer).await;
        assert_eq!(
            held_for(&blocked),
            left.map(|seconds| SECOND * seconds),
            "{gone} left"
        );
        let dump = lock.client.server().dump();
        let kept = String::from_utf8_lossy(reader.expose()).into_owned();
        assert!(!dump.contains(&kept), "{kept} left, but:\n{dump}");
        if left.is_none() {
            assert_eq!(
                lock.as_kind(LockKind::Write).release(&writer).await,
                ReleaseOutcome::Released
            );
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
    assert_eq!(
        reading.extend(&owner, MINUTE).await,
        ExtendOutcome::Extended
    );
    assert_eq!(reading.release(&owner).await, ReleaseOutcome::Released);
    let blocked = lock.attempt_only(&LockKind::Write.new_owner()).await;
    assert_eq!(held_for(&blocked), Some(MINUTE), "the other reader is gone");
}

/// Nobody was told when a lease ended by itself: whoever comes first lets those in that fit beside it.
#[tokio::test(start_paused = true)]
async fn whoever_takes_its_turn_by_itself_lets_in_those_behind() {
    for kind in [LockKind::Read, LockKind::Semaphore, LockKind::Permits] {
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
        let state = lock.inspect().await;
        let all = waiters
            .iter()
            .all(|waiter| state.holders.iter().any(|holder| holder.owner == *waiter));
        assert!(all, "{kind:?}: somebody was left waiting: {state:?}");
    }
}
