//! Answers of this backend in situations that random sequences of calls found.
#![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

use std::time::Duration;

use locktopus_contract::{
    AcquireAttempt, AttemptOutcome, CounterAction, CounterOutcome, CounterRequest, Counters as _,
    LockBackend as _, LockKind, LockName, LockTarget, OwnerId, TokenSource, clock,
};
use locktopus_memory::MemoryBackend;

const LEASE: Duration = Duration::from_secs(30);

fn target(kind: LockKind) -> LockTarget {
    LockTarget::new(LockName::new("lock").unwrap(), kind)
}

/// A writer's lease has ended, and a waiting reader gets the lock first. Another reader gets it
/// too, at once.
#[tokio::test(start_paused = true)]
async fn a_reader_does_not_wait_for_readers_that_come_with_it() {
    let (backend, brief) = (MemoryBackend::new(), Duration::from_secs(1));
    let attempt = |kind: LockKind, lease| {
        let owner = kind.new_owner();
        AcquireAttempt::new(target(kind), owner, lease, clock::timer_in(LEASE))
    };
    let writes = attempt(LockKind::Write, brief);
    let granted = backend.attempt(&writes).await.unwrap();
    assert!(matches!(granted, AttemptOutcome::Granted { .. }));
    let mut waits = attempt(LockKind::Read, LEASE);
    waits.place = Some(LEASE);
    let queued = backend.attempt(&waits).await.unwrap();
    assert!(matches!(queued, AttemptOutcome::Queued { .. }));
    tokio::time::advance(brief).await;
    let comes = attempt(LockKind::Read, LEASE);
    let answer = backend.attempt(&comes).await.unwrap();
    assert_eq!(answer, AttemptOutcome::Granted { token: None });
    assert_eq!(backend.population(), (2, 0));
}

#[tokio::test]
async fn reading_a_number_is_no_operation() {
    let backend = MemoryBackend::new();
    let count = async |operation: &OwnerId, action| {
        let request = CounterRequest {
            target: target(LockKind::Semaphore),
            operation: operation.clone(),
            action,
            deadline: clock::timer_in(LEASE),
        };
        backend.counter(&request).await.unwrap()
    };
    let (first, second) = (OwnerId::generate(), OwnerId::generate());
    let _ = count(&first, CounterAction::Initialise(3)).await;
    let _ = count(&second, CounterAction::Add(1)).await;
    let (value, changed) = (Some(4), false);
    let read = count(&first, CounterAction::Read).await;
    assert_eq!(read, CounterOutcome { value, changed });
}

/// So requests must not reserve tokens without bound, as from a store that never forgets its count.
#[tokio::test]
async fn a_new_store_takes_its_first_token_from_the_clock() {
    let backend = MemoryBackend::new();
    assert_eq!(backend.info().tokens, TokenSource::Clock);
    let began = std::time::UNIX_EPOCH.elapsed().unwrap().as_micros();
    let kind = LockKind::Reentrant;
    let owner = kind.new_owner();
    let deadline = clock::timer_in(LEASE);
    let attempt = AcquireAttempt::new(target(kind), owner, LEASE, deadline);
    let granted = MemoryBackend::new().attempt(&attempt).await.unwrap();
    let AttemptOutcome::Granted { token: Some(token) } = granted else {
        panic!("{granted:?}");
    };
    assert!(u128::from(token.get()) > began, "{token}");
}
