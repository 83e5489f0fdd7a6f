//! Large numbers: a script does a bounded part of the work and the next one continues, and permits
//! need two-byte numbers.
#![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "precise_common/mod.rs"]
mod common;

use std::time::Duration;

use common::{Lock, is_granted};
use locktopus_core::{
    AcquireAttempt, AttemptOutcome, ExtendOutcome, ExtendRequest, LockBackend as _, LockKind,
    OwnerId, ReleaseOutcome, ReleaseRequest,
};
use locktopus_model::redis::Reply;
use locktopus_protocol::Keys;
use tokio::time::Instant;

const MINUTE: Duration = Duration::from_secs(60);
/// The permits of a large semaphore.
const ALL: u32 = 10_000;
const MILLISECOND: Duration = Duration::from_millis(1);

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(1)
}

/// The number of free permits, and each held permit with its deadline in ms.
fn permits(lock: &Lock) -> (i64, Vec<(Vec<u8>, i64)>) {
    let names = Keys::of(&lock.target).names;
    let number = |reply: &Reply| -> i64 {
        let text = String::from_utf8_lossy(reply.bytes()).into_owned();
        text.parse().unwrap()
    };
    let free = number(&command(lock, &["GET", &names[0]]));
    let held = command(lock, &["ZRANGE", &names[4], "0", "-1", "WITHSCORES"]);
    let held = held.items().chunks(2);
    let held = held.map(|pair| (pair[0].bytes().to_vec(), number(&pair[1])));
    (free, held.collect())
}

async fn attempt(lock: &Lock, owner: &OwnerId, permits: u32) -> AttemptOutcome {
    let attempt = AcquireAttempt {
        permits,
        ..AcquireAttempt::new(lock.target.clone(), owner.clone(), MINUTE, soon())
    };
    lock.backend.attempt(&attempt).await.unwrap()
}

/// Each permit of an acquisition is a member of its own, numbered with two bytes.
#[tokio::test(start_paused = true)]
async fn an_acquisition_has_extends_and_returns_all_of_its_permits() {
    // Up to more than Lua can pass to one command: all in one call would fail.
    for many in [1_u16, 255, 256, 257, 1_000, 1_001, 1_100, 9_000] {
        let lock = Lock::of_many(LockKind::PermitSemaphore, u64::from(ALL)).await;
        let owner = LockKind::PermitSemaphore.new_owner();
        let now = lock.client.server().clock / 1_000;
        let numbered = |left: i64| {
            let mut held: Vec<_> = (0..many)
                .map(|number| {
                    let permit = [&owner.expose()[..14], &number.to_be_bytes()].concat();
                    (permit, now + left)
                })
                .collect();
            held.sort();
            (i64::from(ALL) - i64::from(many), held)
        };
        lock.take_permits(&owner, MINUTE, u32::from(many)).await;
        assert_eq!(permits(&lock), numbered(60_000), "{many} taken");
        let shown = lock.inspect().await;
        assert_eq!(shown.holders.len(), usize::from(many.min(1_000)), "{many}");

        let longer = ExtendRequest {
            permits: u32::from(many),
            ..ExtendRequest::new(lock.target.clone(), owner.clone(), 2 * MINUTE)
        };
        let extended = lock.backend.extend(&[longer], soon()).await;
        assert!(
            matches!(extended[..], [Ok(ExtendOutcome::Extended)]),
            "{extended:?}"
        );
        assert_eq!(permits(&lock), numbered(120_000), "{many} extended");

        let release = ReleaseRequest {
            permits: u32::from(many),
            ..ReleaseRequest::new(lock.target.clone(), owner.clone(), soon())
        };
        let released = lock.backend.release(&release).await.unwrap();
        assert_eq!(released, ReleaseOutcome::Released, "{many}");
        let all = (i64::from(ALL), Vec::new());
        assert_eq!(permits(&lock), all, "{many} returned");
    }
}

/// A script takes back only so many permits of dead holders; the next one continues.
#[tokio::test(start_paused = true)]
async fn permits_of_many_dead_come_back_by_and_by() {
    for (kind, at_once) in [
        (LockKind::PermitSemaphore, 256_u32),
        (LockKind::Semaphore, 64),
    ] {
        let all = at_once + 6;
        let lock = Lock::of_many(kind.clone(), u64::from(all)).await;
        for _ in 0..all {
            lock.take_permits(&kind.new_owner(), MINUTE, 1).await;
        }
        lock.pass(MINUTE + MILLISECOND);
        let owner = kind.new_owner();
        let blocked = attempt(&lock, &owner, at_once + 1).await;
        assert!(!is_granted(&blocked), "{kind:?}: {blocked:?}");
        let (free, held) = permits(&lock);
        assert_eq!((free, held.len()), (i64::from(at_once), 6), "{kind:?}");
        let granted = attempt(&lock, &owner, all).await;
        assert!(is_granted(&granted), "{kind:?}: {granted:?}");
    }
}

/// A writer that leaves lets 64 readers in and wakes the next one, which lets the others in.
#[tokio::test(start_paused = true)]
async fn a_crowd_of_readers_is_let_in_by_two_scripts() {
    let lock = Lock::of(LockKind::Read).await;
    let writing = lock.as_kind(LockKind::Write);
    let _heard = lock.listen().await;
    let writer = LockKind::Write.new_owner();
    writing.take(&writer, MINUTE).await;
    let readers = [(); 70].map(|()| LockKind::Read.new_owner());
    for reader in &readers {
        lock.wait(reader, MINUTE, MINUTE).await;
    }
    assert_eq!(writing.release(&writer).await, ReleaseOutcome::Released);
    let state = lock.inspect().await;
    assert_eq!((state.holders.len(), state.waiters.len()), (64, 6));
    lock.wait_or_take(&readers[64], MINUTE).await;
    let state = lock.inspect().await;
    assert_eq!((state.holders.len(), state.waiters.len()), (70, 0));
}

/// A semaphore shows its first thousand holders.
#[tokio::test(start_paused = true)]
async fn the_first_thousand_holders_are_shown() {
    let lock = Lock::of_many(LockKind::Semaphore, u64::from(ALL)).await;
    for _ in 0..1_003 {
        let owner = LockKind::Semaphore.new_owner();
        lock.take_permits(&owner, MINUTE, 1).await;
    }
    assert_eq!(lock.inspect().await.holders.len(), 1_000);
}

/// A queue shows its first thousand waiters.
#[tokio::test(start_paused = true)]
async fn the_first_thousand_of_a_line_are_shown() {
    for kind in [LockKind::Reentrant, LockKind::Fair] {
        let lock = Lock::of(kind.clone()).await;
        lock.take(&kind.new_owner(), MINUTE).await;
        let mut line = Vec::new();
        for _ in 0..1_003 {
            let waiter = kind.new_owner();
            lock.client.server().clock += 1;
            lock.wait(&waiter, MINUTE, MINUTE).await;
            line.push(waiter);
        }
        let state = lock.inspect().await;
        let shown = state.waiters.iter().map(|waiter| &waiter.owner);
        assert!(shown.eq(&line[..1_000]), "{kind:?}");
    }
}

fn command(lock: &Lock, words: &[&str]) -> Reply {
    let words: Vec<_> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
    lock.client.server().command(&words).unwrap()
}

/// A waiter that gives up its place without describing it is found at any position, and no other
/// waiter loses its place.
#[tokio::test(start_paused = true)]
async fn a_place_is_found_in_a_long_line() {
    for kind in [LockKind::Reentrant, LockKind::Fair] {
        let lock = Lock::of(kind.clone()).await;
        lock.take(&kind.new_owner(), MINUTE).await;
        let mut line = Vec::new();
        for _ in 0..600 {
            let waiter = kind.new_owner();
            lock.client.server().clock += 1;
            lock.wait(&waiter, MINUTE, MINUTE).await;
            line.push(waiter);
        }
        for gone in [599, 512, 300, 256, 255, 1, 0] {
            let released = lock.release(&line[gone]).await;
            assert_eq!(released, ReleaseOutcome::NotHeld, "{kind:?}");
            line.remove(gone);
            let state = lock.inspect().await;
            let shown = state.waiters.iter().map(|waiter| &waiter.owner);
            assert!(shown.eq(&line), "{kind:?}, {gone} gone");
        }
    }
}

/// One poll removes sixteen times 64 dead waiters, and leaves the others to the next one.
#[tokio::test(start_paused = true)]
async fn a_thousand_dead_are_removed_by_one_look() {
    for kind in [LockKind::Reentrant, LockKind::Write] {
        let lock = Lock::of(kind.clone()).await;
        let holder = kind.new_owner();
        lock.take(&holder, MINUTE).await;
        for _ in 0..1_100 {
            lock.client.server().clock += 1;
            lock.wait(&kind.new_owner(), MINUTE, MILLISECOND * 100)
                .await;
        }
        lock.pass(MILLISECOND * 200);
        let queue = Keys::of(&lock.target).names[2].clone();
        for left in [76, 0] {
            let released = lock.release(&holder).await;
            assert_eq!(released, ReleaseOutcome::Released, "{kind:?}");
            let in_line = command(&lock, &["ZCARD", &queue]).as_int();
            assert_eq!(in_line, Some(left), "{kind:?}");
            lock.take(&holder, MINUTE).await;
        }
    }
}

/// The same in a fair line, with one and then fifteen times 64. A waiter that is granted the lock
/// behind more of them leaves the line.
#[tokio::test(start_paused = true)]
async fn the_dead_of_a_fair_line_are_removed_by_and_by() {
    let lock = Lock::of(LockKind::Fair).await;
    let (holder, late) = (LockKind::Fair.new_owner(), LockKind::Fair.new_owner());
    lock.take(&holder, MINUTE).await;
    for _ in 0..2_000 {
        let waiter = LockKind::Fair.new_owner();
        lock.wait(&waiter, MINUTE, MILLISECOND * 100).await;
    }
    lock.wait(&late, MINUTE, MINUTE).await;
    lock.pass(MILLISECOND * 200);
    let queue = Keys::of(&lock.target).names[2].clone();
    let in_line = || command(&lock, &["LLEN", &queue]).as_int();
    assert_eq!(lock.release(&holder).await, ReleaseOutcome::Released);
    assert_eq!(in_line(), Some(2_001 - 961));
    lock.wait_or_take(&late, MINUTE).await;
    assert_eq!(in_line(), Some(2_001 - 2 * 961 - 1));
}

/// A waiter that was removed from a fair line returns before the first later one, if that is among
/// the first 4,096.
#[tokio::test(start_paused = true)]
async fn a_place_is_looked_for_among_thousands() {
    for (later, place) in [
        (0, 0),
        (63, 63),
        (64, 64),
        (1_000, 1_000),
        (4_095, 4_095),
        (4_096, 4_100),
    ] {
        let lock = Lock::of(LockKind::Fair).await;
        let owner = LockKind::Fair.new_owner();
        lock.take(&LockKind::Fair.new_owner(), MINUTE).await;
        lock.wait(&owner, MINUTE, MINUTE).await;
        let names = Keys::of(&lock.target).names;
        let me = String::from_utf8(owner.expose().to_vec()).unwrap();
        command(&lock, &["LREM", &names[2], "0", &me]);
        for number in 0..4_100 {
            let other = format!("11111111-2222-8c70-a705-{number:012}:7");
            let came = ["1", "8000000000000000"][usize::from(number >= later)];
            command(&lock, &["RPUSH", &names[2], &other]);
            command(&lock, &["HSET", &names[3], &format!("#{other}"), came]);
        }
        lock.wait(&owner, MINUTE, MINUTE).await;
        let found = command(&lock, &["LPOS", &names[2], &me]).as_int();
        assert_eq!(found, Some(place), "before {later}");
    }
}

/// Dead waiters of another library do not block ours, in any number, once scripts have seen them
/// often enough to be sure.
#[tokio::test(start_paused = true)]
async fn a_crowd_of_another_librarys_dead_is_forgotten() {
    for many in [1, 64, 65, 200, 1_100] {
        let lock = Lock::of(LockKind::Fair).await;
        let _heard = lock.listen().await;
        let names = Keys::of(&lock.target).names;
        let until = (lock.client.server().clock / 1_000 + 300_000).to_string();
        for number in 0..many {
            let theirs = format!("11111111-2222-4333-8444-{number:012}:7");
            command(&lock, &["RPUSH", &names[2], &theirs]);
            command(&lock, &["ZADD", &names[4], &until, &theirs]);
        }
        // If one poll cannot see them all, the first are removed before it sees the others.
        for at in 0..12 {
            let owner = LockKind::Fair.new_owner();
            let attempt = AcquireAttempt {
                place: Some(MINUTE),
                ..AcquireAttempt::new(lock.target.clone(), owner.clone(), MINUTE, soon())
            };
            let outcome = lock.backend.attempt(&attempt).await.unwrap();
            if is_granted(&outcome) {
                assert_eq!(lock.release(&owner).await, ReleaseOutcome::Released);
            } else {
                // One poll cannot pass over all of them.
                assert!(many > 1_000, "{outcome:?} behind {many}, look {at}");
            }
            lock.pass(Duration::from_secs(1));
        }
        let left = command(&lock, &["LLEN", &names[2]]);
        assert!(left.as_int() < Some(100), "{left:?} of {many} are left");
    }
}
