//! The effect of a backend's safety mode on holders and waiters.

use crate::common;

use std::time::Duration;

use common::{Fate, Scripted};
use locktopus_core::{
    Executed, LockBackend, LockError, LockGuard, LockKind, LockName, LockTarget, Locktopus,
    ReleaseOutcome, ReleaseRequest, ReplicaNeed, SafetyMode,
};
use locktopus_memory::MemoryBackend;
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);

const REPLICATED: SafetyMode = SafetyMode::Replicated {
    need: ReplicaNeed::All,
    timeout: Duration::from_millis(50),
};

const QUARANTINE: SafetyMode = SafetyMode::Quarantine {
    max_lease: Duration::from_secs(5),
};

async fn eventually(check: impl AsyncFn() -> bool) {
    let end = Instant::now() + 60 * SECOND;
    while !check().await {
        assert!(Instant::now() < end, "not within a minute");
        sleep(Duration::from_millis(1)).await;
    }
}

/// A holder hands the lock to a waiter of a backend with this mode, whose next attempts have these
/// fates. Returns how many attempts followed the hand-off.
async fn handed_on(
    safety: SafetyMode,
    fates: impl IntoIterator<Item = Fate>,
) -> (Scripted, Result<LockGuard, LockError>, usize) {
    let backend = Scripted::new().with_safety(safety);
    let (holder, locks) = (backend.other(), backend.locks());
    let guard = holder.lock("job").acquire().await.unwrap();
    let waiting = tokio::spawn(locks.lock("job").acquire());
    eventually(async || {
        let state = holder.lock("job").inspect().await.unwrap();
        // The second attempt is the check after the subscription.
        state.waiters.len() == 1 && backend.calls("attempt").len() == 2
    })
    .await;
    backend.next("attempt", fates);
    guard.release().await.unwrap();
    let outcome = waiting.await.unwrap();
    let attempts = backend.calls("attempt").len() - 2;
    (backend, outcome, attempts)
}

#[tokio::test(start_paused = true)]
async fn a_pushed_grant_is_confirmed_where_replicas_must_have_it() {
    let (_, plain, attempts) = handed_on(SafetyMode::Plain, []).await;
    assert_eq!(attempts, 0);
    assert_eq!(plain.unwrap().safety(), SafetyMode::Plain);
    let (_, replicated, attempts) = handed_on(REPLICATED, []).await;
    assert_eq!(attempts, 1);
    assert_eq!(replicated.unwrap().safety(), REPLICATED);
    let (_, quarantined, attempts) = handed_on(QUARANTINE_FOR_ALL, []).await;
    assert_eq!(attempts, 0);
    quarantined.unwrap().release().await.unwrap();
}

/// Long enough for the usual lease.
const QUARANTINE_FOR_ALL: SafetyMode = SafetyMode::Quarantine {
    max_lease: Duration::from_secs(30),
};

#[tokio::test(start_paused = true)]
async fn an_unconfirmed_push_is_given_back() {
    let (backend, refused, _) = handed_on(REPLICATED, [Fate::Deny]).await;
    let error = refused.unwrap_err();
    let LockError::Backend { source, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(source.executed(), Executed::No);
    let observer = backend.other();
    eventually(async || {
        let state = observer.lock("job").inspect().await.unwrap();
        state.holders.is_empty() && state.waiters.is_empty()
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn leases_are_no_longer_than_a_quarantine() {
    let backend = Scripted::new().with_safety(QUARANTINE);
    let names_both = |error: LockError, given: &str| {
        assert!(matches!(error, LockError::Option(_)), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(given) && text.contains("5s"), "{text}");
        assert!(text.contains("quarantine_max_lease"), "{text}");
    };
    names_both(backend.builder().build().unwrap_err(), "30s");
    let locks = backend.builder().renewed_lease(5 * SECOND).build().unwrap();
    let longer = locks.lock("job").fixed_lease(6 * SECOND);
    names_both(longer.acquire().await.unwrap_err(), "6s");
    let longer = locks.lock("job").renewed_lease(7 * SECOND);
    names_both(longer.acquire().await.unwrap_err(), "7s");
    assert!(backend.calls("attempt").is_empty(), "nothing was sent");
    let guard = locks.lock("job").acquire().await.unwrap();
    names_both(guard.extend(6 * SECOND).await.unwrap_err(), "6s");
    guard.extend(5 * SECOND).await.unwrap();
    guard.release().await.unwrap();
}

#[tokio::test]
async fn a_hold_names_the_mode_of_its_backend() {
    let backend = Scripted::new().with_safety(REPLICATED);
    let locks = backend.locks();
    assert_eq!(locks.backend().safety, REPLICATED);
    let guard = locks.lock("job").acquire().await.unwrap();
    assert_eq!(guard.lease().safety(), REPLICATED);
    assert_eq!(locks.held_locks()[0].safety, REPLICATED);
    let shown = format!("{guard:?}");
    assert!(
        shown.contains("replicated to all replicas within 50ms"),
        "{shown}"
    );
    guard.release().await.unwrap();
    let plain = Locktopus::builder(MemoryBackend::new()).build().unwrap();
    assert_eq!(plain.backend().safety, SafetyMode::Plain);
}

/// A release meant to undo a grant may arrive when its owner would hold the lock again.
#[tokio::test(start_paused = true)]
async fn a_release_that_arrives_late_ends_nothing_that_was_granted_since() {
    let backend = Scripted::new().with_safety(REPLICATED);
    backend.next("attempt", [Fate::Unconfirmed]);
    let _guard = backend.locks().lock("job").acquire().await.unwrap();
    let attempts = backend.calls("attempt");
    assert!(attempts.len() > 1);
    let target = LockTarget::new(LockName::new("job").unwrap(), LockKind::Reentrant);
    let undone = attempts[0].owners[0].clone();
    let late = ReleaseRequest::new(target, undone, Instant::now() + SECOND);
    let outcome = backend.store.release(&late).await.unwrap();
    assert_eq!(outcome, ReleaseOutcome::NotHeld);
    let other = backend.other().lock("job").try_acquire().await.unwrap();
    assert!(other.is_none(), "two hold it");
}

/// Whether the next leader continues under the owner id of an attempt whose future was dropped.
async fn goes_on_under_the_same_id(safety: SafetyMode) -> bool {
    let backend = Scripted::new().with_safety(safety);
    backend.next("attempt", [Fate::SlowReply(SECOND / 20)]);
    let locks = backend.locks();
    let dropped = tokio::spawn(locks.lock("job").acquire());
    eventually(async || backend.calls("attempt").len() == 1).await;
    let next = tokio::spawn(locks.lock("job").acquire());
    tokio::task::yield_now().await;
    dropped.abort();
    let _guard = next.await.unwrap().unwrap();
    let attempts = backend.calls("attempt");
    attempts[1].owners == attempts[0].owners
}

/// The attempt may have been undoing its grant, and the release is under way.
#[tokio::test(start_paused = true)]
async fn nobody_goes_on_under_an_id_that_a_release_is_on_its_way_for() {
    assert!(goes_on_under_the_same_id(SafetyMode::Plain).await);
    assert!(!goes_on_under_the_same_id(REPLICATED).await);
}

/// A store that ends all locks of one session together, like etcd, frees a dead process's lock
/// late.
#[tokio::test]
async fn a_backend_whose_locks_outlive_their_leases_is_said_to() {
    for (longer, said) in [(0, None), (9, Some("for 9s after its lease"))] {
        let script = Scripted::new();
        let script = script.saying(|info| info.outlives = Duration::from_secs(longer));
        let findings = script.locks().diagnose().await.unwrap().findings;
        let found = findings.iter().find(|finding| finding.check == "outlives");
        assert_eq!(found.is_some(), said.is_some(), "{findings:?}");
        assert!(said.is_none_or(|said| found.unwrap().message.contains(said)));
    }
}
