//! Grants that count once replicas have them.

use std::time::Duration;

use locktopus::{
    ConnectedReplicas, Executed, Finding, LockError, LockGuard, Locktopus, NotReplicated, Phase,
    ReplicaNeed, SafetyMode, Severity,
};
use locktopus_servers::topology::Node;

use crate::common::raw::Raw;
use crate::common::{At, LONG, close, close_both, eventually, unique, unique_of, url_for};

/// Options for the conformance suite.
pub(crate) const EASY: &str =
    "safety=replicated&replicas=all&replication_timeout=15s&timeout=20s&connect_timeout=5s";

/// How long to wait for replicas that are away.
const SHORT: Duration = Duration::from_millis(300);

/// How long a waiter tolerates missing replicas.
const PATIENCE: Duration = Duration::from_secs(1);

/// Locks with a patient and with an impatient mode: the first must succeed, the second must fail.
async fn locks((place, client): &At, replicas: &str, wait: &str) -> Locktopus {
    let url = format!(
        "{}&safety=replicated&replicas={replicas}&replication_timeout={wait}&timeout=10s",
        url_for(place, client)
    );
    locktopus::connect_with(&url, |builder| builder.tolerate_outage(PATIENCE))
        .await
        .unwrap()
}

pub(crate) async fn replicas_missing(at: At) -> String {
    let (place, _) = &at;
    let [primary, first, second] = place.nodes() else {
        panic!("a primary with two replicas")
    };
    let all = locks(&at, "all", "300ms").await;
    let any = locks(&at, "majority", "8s").await;
    let one = locks(&at, "one", "300ms").await;

    let name = unique("whole");
    let guard = all.lock(&name).acquire().await.unwrap();
    assert_eq!(guard.safety(), mode(ReplicaNeed::All, SHORT));
    assert_eq!(all.held_locks()[0].safety, guard.safety());
    guard.release().await.unwrap();

    first.freeze().await.unwrap();
    let guard = any.lock(&name).acquire().await.unwrap();
    guard.release().await.unwrap();
    let short = refused(&all, primary, 1, 2).await;
    assert_eq!(short.connected, ConnectedReplicas::Count(2));

    second.freeze().await.unwrap();
    refused(&one, primary, 0, 1).await;
    let findings = one.diagnose().await.unwrap().findings;
    let danger =
        |found: &Finding| found.severity == Severity::Danger && found.check == "replication";
    assert!(findings.iter().any(danger), "{findings:?}");
    refused_together(&all, primary).await;
    not_counted(&one).await;

    first.thaw().await.unwrap();
    second.thaw().await.unwrap();
    handed_over(
        &one,
        &locks(&at, "one", "300ms").await,
        [first, second],
        primary,
    )
    .await;
    for locks in [all, any, one] {
        let back = async || {
            locks
                .lock(unique("back"))
                .acquire()
                .await
                .map(LockGuard::release)
        };
        eventually("the replicas are back", LONG, back)
            .await
            .await
            .unwrap();
        close(locks).await;
    }
    "refused, given back and granted again".to_owned()
}

fn mode(need: ReplicaNeed, timeout: Duration) -> SafetyMode {
    SafetyMode::Replicated { need, timeout }
}

/// A request for a lock is refused with these numbers, and leaves nothing.
async fn refused(locks: &Locktopus, primary: &Node, confirmed: u32, needed: u32) -> NotReplicated {
    let name = unique("refused");
    let error = locks.lock(&name).try_acquire().await.unwrap_err();
    let LockError::Backend {
        phase: Phase::Acquire,
        source,
        ..
    } = &error
    else {
        panic!("{error:?}")
    };
    assert_eq!(source.executed(), Executed::No, "given back: {source}");
    let short = error.not_replicated().expect("the numbers").clone();
    assert_eq!(
        (short.confirmed, short.needed),
        (confirmed, needed),
        "{short}"
    );
    // fred knows a server's address only if the user may send CLIENT ID, and this user may not.
    let named = [
        primary.addr().to_string(),
        "the primary named by the sentinels".to_owned(),
    ];
    assert!(named.contains(&short.node), "{short}");
    assert_eq!(exists(primary, &name).await, 0, "{name} is left");
    short
}

async fn refused_together(locks: &Locktopus, primary: &Node) {
    let names = [unique("together"), unique("together")];
    let error = locks.multi(names.clone()).try_acquire().await.unwrap_err();
    assert!(error.not_replicated().is_some(), "{error:?}");
    for name in &names {
        assert_eq!(exists(primary, name).await, 0, "{name} is left");
    }
}

/// A change without a holder is made, and the caller learns that it is not safe yet.
async fn not_counted(locks: &Locktopus) {
    let semaphore = locks.semaphore(unique("permits"));
    let error = semaphore.initialise(3).await.unwrap_err();
    assert!(error.not_replicated().is_some(), "{error:?}");
    assert_eq!(semaphore.available().await.unwrap(), Some(3));
}

/// A lock that is handed on while replicas are missing is not believed, and an extension does not
/// count.
async fn handed_over(locks: &Locktopus, others: &Locktopus, replicas: [&Node; 2], primary: &Node) {
    let name = unique("handed");
    let take = async || locks.lock(&name).acquire().await;
    let guard = eventually("the replicas are back", LONG, take).await;
    let waiter = tokio::spawn(others.lock(&name).acquire());
    let queued = async || {
        let state = locks.lock(&name).inspect().await.unwrap();
        (state.waiters.len() == 1).then_some(()).ok_or(state)
    };
    eventually("a waiter in the queue", LONG, queued).await;
    for replica in replicas {
        replica.freeze().await.unwrap();
    }
    let until = guard.valid_until();
    let error = guard.extend(Duration::from_secs(60)).await.unwrap_err();
    assert!(error.not_replicated().is_some(), "{error:?}");
    assert!(matches!(
        error,
        LockError::Backend {
            phase: Phase::Extend,
            ..
        }
    ));
    assert_eq!(guard.valid_until(), until);

    guard.release().await.unwrap();
    let error = waiter.await.unwrap().unwrap_err();
    assert!(error.not_replicated().is_some(), "{error:?}");
    let gone = async || match exists(primary, &name).await {
        0 => Ok(()),
        left => Err(left),
    };
    eventually("nothing is left", LONG, gone).await;
    for replica in replicas {
        replica.thaw().await.unwrap();
    }
}

async fn exists(primary: &Node, name: &str) -> i64 {
    Raw::to(primary).await.say(&["EXISTS", name]).await.int()
}

/// The replica of each shard's own primary confirms its grants and hand-offs.
pub(crate) async fn on_every_shard(at: At) -> String {
    let (locks, others) = (locks(&at, "all", "8s").await, locks(&at, "all", "8s").await);
    for shard in 0..3 {
        let name = unique_of(3, shard, "shard");
        let guard = locks.lock(&name).acquire().await.unwrap();
        let waiter = tokio::spawn(others.lock(&name).acquire());
        let queued = async || {
            let state = locks.lock(&name).inspect().await.unwrap();
            (state.waiters.len() == 1).then_some(()).ok_or(state)
        };
        eventually("a waiter in the queue", LONG, queued).await;
        let token = guard.token();
        guard.release().await.unwrap();
        let next = waiter.await.unwrap().unwrap();
        assert!(next.token() > token);
        next.extend(Duration::from_secs(60)).await.unwrap();
        next.release().await.unwrap();
    }
    close_both(locks, others).await;
    "granted, handed on and extended on each shard".to_owned()
}
