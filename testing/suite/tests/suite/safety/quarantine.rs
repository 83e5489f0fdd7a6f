//! What is held back after a server may have forgotten grants, and what is not.

use std::sync::Arc;
use std::time::Duration;

use locktopus::{
    BackendError, BackendErrorKind, ConnectError, Executed, LockError, LockGuard, Locktopus,
    SafetyMode,
};
use locktopus_servers::topology::{Deployment, Knobs, TopologyKind};
use tokio::time::Instant;

use crate::common::raw::Raw;
use crate::common::{
    At, CLIENTS, LONG, chain, close, close_both, connect, eventually, plain_url_for, servers,
    servers_with, unique, unique_of, url_for,
};
use crate::safety::moved;

/// Longer than any lease of the conformance suite.
pub(crate) const SUITE_LEASE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The options with that lease.
pub(crate) const SUITE: &str =
    "safety=quarantine&quarantine_max_lease=30d&timeout=5s&connect_timeout=5s";

const MAX_LEASE: Duration = Duration::from_secs(3);

/// Longer than most failovers.
const FAILOVER_LEASE: Duration = Duration::from_secs(8);

async fn locks((place, client): &At, max_lease: Duration) -> Locktopus {
    let url = format!(
        "{}&safety=quarantine&quarantine_max_lease={}s&timeout=5s",
        url_for(place, client),
        max_lease.as_secs()
    );
    locktopus::connect_with(&url, |builder| builder.tolerate_outage(LONG))
        .await
        .unwrap()
}

/// Records for the server that its history is known, so that it holds nothing back.
pub(crate) async fn vouch(place: &Deployment, max_lease: Duration) {
    let node = place.primary().await.unwrap();
    let id = node.info("replication", "master_replid").await.unwrap();
    let lease = max_lease.as_millis().to_string();
    let record = [
        "HSET",
        "locktopus_history",
        "history",
        id.as_deref().unwrap(),
        "until",
        "0",
        "lease",
        &lease,
    ];
    Raw::to(node).await.say(&record).await;
}

/// Any other error fails the test.
fn unless_transient<T>(ended: Result<T, LockError>) -> Result<T, BackendError> {
    match ended {
        Err(LockError::Backend { source, .. }) if source.is_transient() => Err(source),
        ended => Ok(ended.unwrap()),
    }
}

/// Waits until a free lock is granted. That must not be before the leases that the server may have
/// forgotten have ended, counted from `since`, which is before any request to this server.
async fn held_back(
    locks: &Locktopus,
    name: &str,
    since: Instant,
    max_lease: Duration,
) -> LockGuard {
    // A machine that stopped may make servers declare each other dead for a moment, but they must
    // not grant earlier for it.
    let granted = eventually("a grant", LONG, async || {
        unless_transient(locks.lock(name).acquire().await)
    });
    let guard = granted.await;
    let waited = since.elapsed();
    assert!(waited >= max_lease, "{name} was granted after {waited:?}");
    guard
}

pub(crate) async fn of_a_restarted_server(at: At) -> String {
    let (place, _) = &at;
    let node = place.primary().await.unwrap();
    let begun = Instant::now();
    let old = locks(&at, MAX_LEASE).await;
    let name = unique("restarted");
    let guard = held_back(&old, &name, begun, MAX_LEASE).await;
    assert_eq!(
        guard.safety(),
        SafetyMode::Quarantine {
            max_lease: MAX_LEASE
        }
    );
    guard.release().await.unwrap();

    // A client that has watched the server all the time needs no record.
    let watched = async || (begun.elapsed() > MAX_LEASE * 2).then_some(()).ok_or(());
    eventually("twice the lease is over", LONG, watched).await;
    let raw = &mut Raw::to(node).await;
    assert_eq!(raw.say(&["DEL", "locktopus_history"]).await.int(), 1);
    let request = old.lock(&name);
    let guard = request.try_acquire().await.unwrap().expect("vouched for");
    guard.release().await.unwrap();

    let restarted = Instant::now();
    node.crash().await.unwrap();
    node.start().await.unwrap();
    held_back(&old, &name, restarted, MAX_LEASE)
        .await
        .release()
        .await
        .unwrap();
    close(old).await;
    // Others rely on the record.
    let new = locks(&at, MAX_LEASE).await;
    let request = new.lock(&name);
    let guard = request.try_acquire().await.unwrap().expect("on record");
    guard.release().await.unwrap();
    leases_have_a_bound(&new, &at).await;
    close(new).await;
    "held back at first and after a restart".to_owned()
}

/// Refuses leases longer than the agreed wait, and clients that would wait for less.
async fn leases_have_a_bound(locks: &Locktopus, (place, client): &At) {
    let longer = locks.lock(unique("long")).fixed_lease(MAX_LEASE * 2);
    let error = longer.try_acquire().await.unwrap_err();
    assert!(matches!(error, LockError::Option(_)), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("6s") && text.contains("at most 3s"), "{text}");
    let guard = locks.lock(unique("long")).acquire().await.unwrap();
    let error = guard.extend(MAX_LEASE * 2).await.unwrap_err();
    assert!(matches!(error, LockError::Option(_)), "{error:?}");
    guard.release().await.unwrap();

    let url = url_for(place, client);
    let other = connect(&format!("{url}&safety=quarantine&quarantine_max_lease=2s")).await;
    let error = other.lock(unique("other")).try_acquire().await.unwrap_err();
    let LockError::Backend { source, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(source.kind(), BackendErrorKind::Refused);
    assert_eq!(source.executed(), Executed::No);
    let text = source.to_string();
    assert!(text.contains("3000ms") && text.contains("2000ms"), "{text}");
    close(other).await;
}

/// A user without the right to read the replication id gets no connection, and nothing is written.
pub(crate) async fn without_info() {
    let knobs = Knobs {
        users: vec!["blind on >secret ~* &* +@all -info".to_owned()],
        ..Knobs::default()
    };
    let place = servers_with(TopologyKind::Standalone, knobs).await;
    for client in CLIENTS {
        let url = plain_url_for(&place, client).replace("://", "://blind:secret@");
        let url = format!("{url}&safety=quarantine");
        let error = locktopus::connect(&url).await.unwrap_err();
        let ConnectError::Backend { source, .. } = &error else {
            panic!("{error:?}")
        };
        assert_eq!(source.kind(), BackendErrorKind::Denied);
        let text = chain(&error);
        assert!(
            text.contains("+info") && !text.contains("secret@"),
            "{text}"
        );
    }
    let mut raw = Raw::to(place.primary().await.unwrap()).await;
    assert_eq!(raw.say(&["DBSIZE"]).await.int(), 0);
}

/// A replica is promoted. Holders of surviving locks keep them, and no one else gets a lock for the
/// longest lease.
pub(crate) async fn of_a_promoted_replica(client: &'static str) -> String {
    let place = Arc::new(servers(TopologyKind::SENTINEL).await);
    vouch(&place, FAILOVER_LEASE).await;
    let at = (Arc::clone(&place), client);
    let (locks, others) = (
        locks(&at, FAILOVER_LEASE).await,
        locks(&at, FAILOVER_LEASE).await,
    );
    let (kept, lost) = (unique("kept"), unique("lost"));
    let guard = keep(&place, &locks, &kept).await;
    let old = place.primary().await.unwrap();
    // A busy machine may replace it before this program continues.
    let crashed = Instant::now();
    old.crash().await.unwrap();
    place.wait_writable(&kept, LONG).await.unwrap();

    let other = held_back(&others, &lost, crashed, FAILOVER_LEASE);
    let handed_on = async {
        // On a very slow machine the holder's lease ends before it sees the new primary.
        let survived = async || {
            guard
                .extend(FAILOVER_LEASE)
                .await
                .map(|_| true)
                .or_else(|error| match error {
                    LockError::Lost { .. } => Ok(false),
                    error => Err(error),
                })
        };
        let survived = eventually("an answer to the holder", LONG, survived).await;
        let waiter = tokio::spawn(others.lock(&kept).acquire());
        if survived {
            guard.release().await.unwrap();
        }
        let next = waiter.await.unwrap().unwrap();
        let waited = crashed.elapsed();
        assert!(waited >= FAILOVER_LEASE, "handed on after {waited:?}");
        next.release().await.unwrap();
        survived
    };
    let (other, survived) = tokio::join!(other, handed_on);
    other.release().await.unwrap();
    close_both(locks, others).await;
    let fate = if survived { "went on" } else { "was too late" };
    format!("the holder {fate}, others waited {:.1?}", crashed.elapsed())
}

/// A cluster slot is held back on its first use, after a move, and after a failover of its primary.
pub(crate) async fn of_a_promoted_shard(client: &'static str) -> String {
    // Shards must not be replaced because the machine stopped for a second.
    let knobs = Knobs {
        node_timeout_ms: 3_000,
        ..Knobs::default()
    };
    let place = Arc::new(servers_with(TopologyKind::CLUSTER, knobs).await);
    let at = (Arc::clone(&place), client);
    let begun = Instant::now();
    let locks = locks(&at, FAILOVER_LEASE).await;
    let name = unique_of(3, 0, "shard");
    let first = held_back(&locks, &name, begun, FAILOVER_LEASE).await;
    first.release().await.unwrap();
    // The client has watched this slot for that long, although it was never used.
    let unused = unique_of(3, 0, "unused");
    let watched = async || match unless_transient(locks.lock(&unused).try_acquire().await) {
        Ok(Some(guard)) => Ok(guard),
        Ok(None) => Err(None),
        Err(error) => Err(Some(error)),
    };
    let guard = eventually("vouched for", LONG, watched).await;
    guard.release().await.unwrap();

    let moved_away = Instant::now();
    let victim = place.primary().await.unwrap();
    let elsewhere = moved::slot_with(&place, &name).await;
    assert_ne!(victim.name(), elsewhere.name());
    let crashed = Instant::now();
    victim.crash().await.unwrap();
    place.wait_writable(&unused, LONG).await.unwrap();
    let (moved, promoted) = tokio::join!(
        held_back(&locks, &name, moved_away, FAILOVER_LEASE),
        held_back(&locks, &unused, crashed, FAILOVER_LEASE),
    );
    moved.release().await.unwrap();
    promoted.release().await.unwrap();
    close(locks).await;
    format!("held back until {:.1?} after the crash", crashed.elapsed())
}

/// A lock whose hold is on every replica.
async fn keep(place: &Deployment, locks: &Locktopus, name: &str) -> LockGuard {
    let guard = locks.lock(name).acquire().await.unwrap();
    let mut raw = Raw::to(place.primary().await.unwrap()).await;
    raw.say(&["SET", &unique("mark"), "1", "PX", "60000"]).await;
    assert_eq!(raw.say(&["WAIT", "2", "5000"]).await.int(), 2);
    guard
}
