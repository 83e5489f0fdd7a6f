//! The server stops answering without closing a connection, and later continues as if nothing had
//! happened.

use std::time::Duration;

use locktopus::{AcquireAttempt, Executed, LockError, LockKind, LockName, LockTarget, LostCause};
use tokio::time::Instant;

use crate::common::raw::{Raw, Value};
use crate::common::{LONG, SOON, close, eventually, locks, unique, url_for};
use crate::failover::At;
use crate::failover::holder::{Holder, TOLERANCE};

const LEASE: Duration = Duration::from_millis(1_500);
const PATIENCE: Duration = Duration::from_millis(700);

/// Longer than the test: a lock taken by a late attempt must be given back, not just expire.
const GHOST_LEASE: Duration = Duration::from_secs(300);

const LATE: usize = 10;

pub(crate) async fn and_thawed((place, client): At) -> String {
    let locks = locks(&place, client).await;
    let node = &place.nodes()[0];
    let held = Holder::of(&locks, unique("held"), LEASE).await;
    node.freeze().await.unwrap();
    let frozen = Instant::now();

    let names: Vec<_> = (0..LATE).map(|_| unique("late")).collect();
    let attempts = names.iter().map(|name| {
        let request = locks
            .lock(name)
            .fixed_lease(GHOST_LEASE)
            .wait_at_most(PATIENCE);
        tokio::spawn(async move { (request.acquire().await, Instant::now()) })
    });
    for attempt in attempts.collect::<Vec<_>>() {
        let (outcome, at) = attempt.await.unwrap();
        let error = outcome.unwrap_err();
        assert!(
            matches!(
                error,
                LockError::WaitTimeout { .. } | LockError::Backend { .. }
            ),
            "{error:?}"
        );
        let late = (at - frozen).saturating_sub(PATIENCE);
        assert!(late < TOLERANCE, "back {late:?} late: {error}");
    }
    let once = Instant::now();
    let error = locks.lock(&names[0]).try_acquire().await.unwrap_err();
    assert!(matches!(error, LockError::Backend { .. }), "{error:?}");
    let gave_up = once.elapsed();
    assert!(
        gave_up < locks.backend().call_timeout + TOLERANCE,
        "{gave_up:?}"
    );

    let cause = held.loses(SOON).await;
    let lost = frozen.elapsed();
    assert!(matches!(cause, LostCause::Unreachable { .. }), "{cause:?}");

    node.thaw().await.unwrap();
    let thawed = Instant::now();
    let again = eventually("a grant after the thaw", SOON, async || {
        locks.lock(&held.name).acquire().await
    })
    .await;
    let back = thawed.elapsed();
    assert!(again.token().unwrap() > held.token);
    again.release().await.unwrap();
    drop(held);

    // The server refuses every late attempt, or we give it back long before its lease ends.
    let mut raw = Raw::to(node).await;
    eventually("no ghosts", LONG, async || {
        for name in &names {
            if raw.say(&["EXISTS", name]).await != Value::Int(0) {
                return Err(name);
            }
        }
        match locks.background_tasks() {
            0 => Ok(()),
            _ => Err(&names[0]),
        }
    })
    .await;
    let clean = thawed.elapsed();
    for name in &names {
        assert_eq!(raw.say(&["EXISTS", name]).await, Value::Int(0), "{name}");
    }
    close(locks).await;
    format!(
        "attempts back in time, lock reported lost after {lost:.2?}, after the thaw: grants after \
         {back:.2?}, nothing left after {clean:.2?}"
    )
}

/// An attempt that reaches the server after its deadline takes nothing, even without a clean-up and
/// even for a name that was never used before.
pub(crate) async fn late_attempt((place, client): At) -> String {
    let backend = locktopus::connect_backend(&url_for(&place, client))
        .await
        .unwrap();
    let node = &place.nodes()[0];
    node.freeze().await.unwrap();
    let names: Vec<_> = (0..LATE).map(|_| unique("late")).collect();
    let mut sent = 0;
    for name in &names {
        let target = LockTarget::new(LockName::new(name).unwrap(), LockKind::Reentrant);
        let owner = target.kind().new_owner();
        let deadline = Instant::now() + Duration::from_millis(50);
        let attempt = AcquireAttempt::new(target, owner, GHOST_LEASE, deadline);
        let error = backend.attempt(&attempt).await.unwrap_err();
        sent += usize::from(error.executed() == Executed::Maybe);
    }
    assert!(sent > 0, "no attempt was on its way");
    // The limit allows for some error in the estimate of the server's clock; be well past that.
    tokio::time::sleep(Duration::from_millis(500)).await;
    node.thaw().await.unwrap();
    let mut raw = Raw::to(node).await;
    // Requests sent before the thaw run before later ones. The second round is for safety.
    for _ in 0..2 {
        for name in &names {
            assert_eq!(raw.say(&["EXISTS", name]).await, Value::Int(0), "{name}");
        }
        eventually("an answer", SOON, async || {
            backend.diagnose(Instant::now() + SOON).await
        })
        .await;
    }
    backend.close().await;
    format!("{sent} of {LATE} attempts were on their way, none took anything")
}
