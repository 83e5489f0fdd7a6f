//! While a slot moves, holds stay, requests are refused with the reason, and redirects from node to
//! node cost no connections.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use locktopus::{BackendErrorKind, Executed, LockError, LockGuard, Locktopus};
use locktopus_servers::topology::Deployment;
use tokio::time::Instant;

use crate::common::raw::Raw;
use crate::common::{SOON, close, close_both, eventually, locks, unique_of, url_for};
use crate::wakeups::At;
use crate::wakeups::moved::Migration;

/// Short, so that it is renewed often within the test.
const LEASE: Duration = Duration::from_millis(2_500);

/// Longer than it, so that a lock that is not renewed is lost.
const A_WHILE: Duration = Duration::from_secs(3);

const CROWD: usize = 50;

/// Takes every slot from the last primary, so that no slot table names it any more.
pub(crate) async fn empty_the_last(place: &Deployment) {
    let last = place.nodes()[2].addr().port().to_string();
    eventually("a node without slots", SOON, async || {
        let mut left = Vec::new();
        for node in place.nodes() {
            let table = node.command(&["CLUSTER", "SLOTS"]).await.unwrap();
            for range in table.items() {
                let range = range.items();
                if range[2].items()[1].text() == last {
                    let (first, end) = (range[0].text(), range[1].text());
                    // A node that has forgotten them already refuses.
                    let slots = ["CLUSTER", "DELSLOTSRANGE", &first, &end];
                    let _ = node.command(&slots).await;
                    left.push((first, end));
                }
            }
        }
        left.is_empty().then_some(()).ok_or(left)
    })
    .await;
}

/// In each stage of the move: nothing moved yet, some keys, all keys, slot handed over.
pub(crate) async fn is_held_throughout((place, client): At) -> String {
    let holders = locktopus::connect_with(&url_for(&place, client), |builder| {
        builder.renewed_lease(LEASE)
    })
    .await
    .unwrap();
    let others = locks(&place, client).await;
    let name = unique_of(3, 0, "moving");
    // Kinds with several keys, in one slot.
    let names = [
        name.clone(),
        format!("{{{name}}}-b"),
        format!("{{{name}}}-c"),
        // Of the same kind as the first, so that one batch renews both.
        format!("{{{name}}}-d"),
    ];
    let two = (holders.lock(&names[0]), holders.lock(&names[3]));
    let two = tokio::join!(two.0.acquire(), two.1.acquire());
    let guards = [
        two.0.unwrap(),
        two.1.unwrap(),
        holders.mutex(&names[1]).acquire().await.unwrap(),
        holders.fair_lock(&names[2]).acquire().await.unwrap(),
    ];
    let migration = Migration::open(&place, &name, &place.nodes()[2]).await;
    let begun = Instant::now();
    stays(&guards, "opened").await;
    let said = refused(&others, &name).await;
    // A lock's own key may move before those beside it, or after them.
    let mut moved = 0;
    for some in [1, 1, 1, 1, 1, 1, 1, 1, usize::MAX] {
        for _ in 0..some {
            if !migration.move_a_key().await {
                break;
            }
            moved += 1;
        }
        stays(&guards, "half-way").await;
    }
    refused(&others, &name).await;
    migration.end().await;
    let took = begun.elapsed();
    stays(&guards, "there").await;
    for guard in guards {
        guard.release().await.unwrap();
    }
    let guard = others.lock(&name).wait_at_most(SOON).acquire().await;
    guard.unwrap().release().await.unwrap();
    close_both(holders, others).await;
    format!("held for {took:.2?} while {moved} keys moved; others hear: {said}")
}

/// Each of them is renewed once more before it expires.
async fn stays(guards: &[LockGuard], when: &str) {
    // Read all deadlines first, as all renewals come at about the same time.
    let ends: Vec<_> = guards.iter().map(|guard| guard.valid_until()).collect();
    for (guard, until) in guards.iter().zip(ends) {
        eventually(when, SOON, async || {
            guard
                .ensure_valid()
                .unwrap_or_else(|error| panic!("{when}: {error}"));
            let renewed = guard.valid_until() > until;
            renewed.then_some(()).ok_or("not renewed")
        })
        .await;
    }
}

/// A new lock in the slot is refused, and the error names the reason.
async fn refused(others: &Locktopus, name: &str) -> String {
    let free = format!("{{{name}}}-free");
    let error = others.lock(free).try_acquire().await.unwrap_err();
    let LockError::Backend { source, .. } = &error else {
        panic!("{error:?}");
    };
    // Unless the deadline passed during the retry.
    let known = (BackendErrorKind::Unavailable, Executed::No);
    let unknown = (BackendErrorKind::Timeout, Executed::Maybe);
    let said = (source.kind(), source.executed());
    assert!(said == known || said == unknown, "{error:?}");
    let said = source.to_string();
    assert!(said.contains("being moved to another node"), "{said}");
    said
}

pub(crate) async fn needs_few_connections((place, client): At) -> String {
    let locks = locktopus::connect_with(&url_for(&place, client), |builder| {
        builder.renewed_lease(LEASE)
    })
    .await
    .unwrap();
    let name = unique_of(3, 0, "sent-on");
    // Its renewals must not wait behind the crowd.
    let held = locks.lock(&name).acquire().await.unwrap();
    let migration = Migration::open(&place, &name, &place.nodes()[2]).await;
    while migration.move_a_key().await {}

    let mut servers = Vec::new();
    for node in place.nodes() {
        servers.push(Raw::to(node).await);
    }
    let before = accepted(&mut servers).await;
    let until = Instant::now() + A_WHILE;
    let asked = AtomicU64::new(0);
    let crowd = (0..CROWD).map(|number| {
        let (locks, asked, name) = (&locks, &asked, format!("{{{name}}}-{number}"));
        async move {
            while Instant::now() < until {
                let outcome = locks.lock(&name).try_acquire().await;
                assert!(outcome.is_err(), "{outcome:?}");
                asked.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    join_all(crowd).await;
    let made = accepted(&mut servers).await - before;
    held.ensure_valid().unwrap();
    held.release().await.unwrap();
    migration.end().await;
    let asked = asked.load(Ordering::Relaxed);
    // One for redirected commands, one more if the slot map is read again, and one in reserve.
    assert!(made <= 3, "{made} connections");
    let guard = locks.lock(&name).wait_at_most(SOON).acquire().await;
    guard.unwrap().release().await.unwrap();
    close(locks).await;
    format!("{made} connections for {asked} attempts of {CROWD} callers")
}

/// Of all servers together, over existing connections.
async fn accepted(servers: &mut [Raw]) -> u64 {
    let mut sum = 0;
    for server in servers {
        let text = server.say(&["INFO", "stats"]).await.text();
        let count = text
            .lines()
            .find_map(|line| line.strip_prefix("total_connections_received:"));
        sum += count.unwrap().trim().parse::<u64>().unwrap();
    }
    sum
}
