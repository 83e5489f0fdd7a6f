//! Prefixes and names; and how long a page takes from a distant server, in paused time.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use locktopus_contract::Directory;

use super::*;
use crate::client::stub::{self, Stub};
use crate::client::{ClientError, Deployment};
use crate::{BackendOptions, PubSubMode, RedisBackend};

/// A distant server, or a cluster of one. Page `n` of its keys begins at cursor `n`.
#[derive(Debug)]
struct FarAway {
    deployment: Deployment,
    round_trip: Duration,
    pages: Vec<Vec<String>>,
    /// The letter of every key.
    kept: &'static str,
}

impl FarAway {
    fn scanned(&self, args: &[&[u8]]) -> Reply {
        let at: usize = std::str::from_utf8(args[1]).unwrap().parse().unwrap();
        let next = if at + 1 < self.pages.len() { at + 1 } else { 0 };
        let keys = self.pages[at].iter();
        Reply::Array(vec![
            Reply::Bytes(next.to_string().into()),
            Reply::Array(keys.map(|key| Reply::Bytes(key.clone().into())).collect()),
        ])
    }

    fn classified(&self, args: &[&[u8]]) -> Reply {
        let keys: usize = std::str::from_utf8(args[2]).unwrap().parse().unwrap();
        Reply::Array(vec![Reply::Bytes(self.kept.into()); keys / 4])
    }
}

#[async_trait]
impl Stub for FarAway {
    fn deployment(&self) -> Deployment {
        self.deployment
    }
    async fn command(&self, route: Route, args: &[&[u8]]) -> Result<Reply, ClientError> {
        // The lower the slot, the later the answer: answers overtake each other.
        let later = match route {
            Route::Slot(slot) => u64::from((SLOTS - slot) / 1024),
            Route::Any => 0,
        };
        tokio::time::sleep(self.round_trip + Duration::from_millis(later)).await;
        Ok(match args[0] {
            b"SCAN" => self.scanned(args),
            b"EVALSHA" => self.classified(args),
            _ => Reply::Array(Vec::new()),
        })
    }
}

async fn backend(server: FarAway) -> RedisBackend {
    let options = BackendOptions {
        pubsub: PubSubMode::Plain,
        ..BackendOptions::default()
    };
    RedisBackend::new(stub::client(&Arc::new(server)), options)
        .await
        .unwrap()
}

const TIMEOUT: Duration = Duration::from_secs(5);

/// The next page, and how long it took.
async fn next(backend: &RedisBackend, cursor: Option<ScanCursor>) -> (LockPage, Duration) {
    let begun = Instant::now();
    let page = backend.scan("", cursor, begun + TIMEOUT).await;
    (page.expect("the server answers in time"), begun.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_page_without_locks_ends_at_half_time() {
    let round_trip = Duration::from_millis(400);
    let backend = backend(FarAway {
        deployment: Deployment::Standalone,
        round_trip,
        // Each page takes two questions: one for its key, one to classify it.
        pages: vec![vec!["not a lock".to_owned()]; 20],
        kept: "-",
    })
    .await;
    let (mut cursor, mut calls) = (None, 0);
    loop {
        let (page, took) = next(&backend, cursor).await;
        assert_eq!(page.locks, []);
        let longest = TIMEOUT / 2 + round_trip * 2 + Duration::from_millis(40);
        assert!(took < longest, "{took:?}");
        calls += 1;
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
        assert!(took >= TIMEOUT / 2, "{took:?}");
    }
    assert_eq!(calls, 5, "of four pages of the server each");
}

#[tokio::test(start_paused = true)]
async fn however_far_the_server_is_each_page_gets_on() {
    let backend = backend(FarAway {
        deployment: Deployment::Standalone,
        // One answer takes more than half of the time.
        round_trip: Duration::from_millis(2_600),
        pages: vec![Vec::new(); 3],
        kept: "-",
    })
    .await;
    let mut cursor = None;
    for more in [true, true, false] {
        let (page, _) = next(&backend, cursor.clone()).await;
        assert_eq!(page.locks, []);
        assert_ne!(page.next, cursor);
        assert_eq!(page.next.is_some(), more);
        cursor = page.next;
    }
}

#[tokio::test(start_paused = true)]
async fn keys_of_many_slots_are_classified_at_once_and_stay_in_order() {
    let names: Vec<_> = (0..500).map(|i| format!("job-{i}")).collect();
    let slots: HashSet<_> = names.iter().map(|n| key_slot(n.as_bytes())).collect();
    assert!(slots.len() > 3 * SLOTS_AT_ONCE);
    let round_trip = Duration::from_millis(150);
    let backend = backend(FarAway {
        deployment: Deployment::Cluster,
        round_trip,
        pages: vec![names],
        kept: "l",
    })
    .await;
    let (page, took) = next(&backend, None).await;
    assert_eq!(page.locks.len(), 500);
    let slots = page.locks.iter().map(|lock| key_slot(lock.name.as_bytes()));
    assert!(slots.is_sorted());
    // The keys, the primaries, and four times as many slots as are classified at once.
    assert!(took < round_trip * 7, "{took:?}");
}

#[test]
fn a_prefix_matches_only_itself() {
    assert_eq!(literal("a*b?[c]\\"), "a\\*b\\?\\[c\\]\\\\");
    assert_eq!(literal("shop:"), "shop:");
}

#[test]
fn side_keys_are_no_locks() {
    for key in ["redisson_lock_token:{a}", "locktopus_queue:{a}"] {
        assert_eq!(lock_name(&Bytes::from_static(key.as_bytes())), None);
    }
    assert_eq!(lock_name(&Bytes::from_static(b"\xff")), None);
    assert!(lock_name(&Bytes::from_static(b"a")).is_some());
}
