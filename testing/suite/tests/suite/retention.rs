//! How long a name leaves data on the server, and how much.

use crate::common;

use std::time::Duration;

use common::{
    CLIENTS, HANDED, SOON, close, close_both, connect, eventually, servers, unique, url, url_for,
};
use locktopus::{LockError, Locktopus, MutexProfile, Severity, TokenRetention, connect_with};
use locktopus_servers::topology::{Deployment, TopologyKind};

/// Creates some of the token keys that names leave after one use; all at once would block the
/// server for a long time.
const FILL: &str = "for i = 1, 10000 do \
    redis.call('SET', 'redisson_lock_token:{request:' .. ARGV[1] .. i .. '}', '1', 'EX', 600) end";

const MINUTE: Duration = Duration::from_secs(60);

async fn ask(place: &Deployment, words: &[&str]) -> i64 {
    let reply = place.nodes()[0].command(words).await.unwrap();
    reply.text().parse().unwrap()
}

/// The remaining life of a token key, or `None` if it never expires.
async fn kept(place: &Deployment, name: &str) -> Option<Duration> {
    let left = ask(place, &["PTTL", &format!("redisson_lock_token:{{{name}}}")]).await;
    assert_ne!(left, -2, "{name} has no token key");
    (left >= 0).then(|| Duration::from_millis(left.unsigned_abs()))
}

/// Acquires and releases, and returns how long the server then keeps the token.
async fn kept_after(
    place: &Deployment,
    request: locktopus::LockRequest,
    name: &str,
) -> Option<Duration> {
    request.acquire().await.unwrap().release().await.unwrap();
    kept(place, name).await
}

fn about(asked: Duration, found: Option<Duration>) {
    let found = found.expect("an end");
    assert!(
        found <= asked && found + SOON > asked,
        "{found:?} instead of {asked:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_asked_for_last_counts() {
    let place = servers(TopologyKind::Standalone).await;
    for client in CLIENTS {
        let base = url_for(&place, client);
        let (usual, short) = (
            connect(&base).await,
            connect(&url(&base, "token_retention=10m")).await,
        );
        let name = unique("kept");
        about(
            MINUTE * 24 * 60,
            kept_after(&place, usual.lock(&*name), &name).await,
        );
        about(
            MINUTE * 10,
            kept_after(&place, short.lock(&*name), &name).await,
        );
        about(
            MINUTE * 3,
            kept_after(
                &place,
                short.lock(&*name).token_retention(MINUTE * 3),
                &name,
            )
            .await,
        );
        // A long hold is not forgotten sooner.
        let long = usual
            .lock(&*name)
            .fixed_lease(MINUTE * 50)
            .token_retention(MINUTE);
        about(MINUTE * 100, kept_after(&place, long, &name).await);
        let forever = usual.lock(&*name).token_retention(TokenRetention::Forever);
        assert_eq!(kept_after(&place, forever, &name).await, None);
        // A break does not let it expire: it may be the counter of Java's `RFencedLock`.
        let _held = usual.lock(&*name).acquire().await.unwrap();
        let token = format!("redisson_lock_token:{{{name}}}");
        ask(&place, &["PERSIST", &token]).await;
        usual.lock(&*name).force_release("test").await.unwrap();
        assert_eq!(kept(&place, &name).await, None);
        let mutex = unique("mutex");
        let request = usual.mutex(&*mutex).token_retention(MINUTE * 2);
        about(MINUTE * 2, kept_after(&place, request, &mutex).await);

        let built = connect_with(&base, |builder| builder.token_retention(MINUTE * 7))
            .await
            .unwrap();
        about(
            MINUTE * 7,
            kept_after(&place, built.lock(&*name), &name).await,
        );
        let group = unique("group");
        let guard = built.multi([&*group]).acquire().await.unwrap();
        guard.release().await.unwrap();
        about(MINUTE * 7, kept(&place, &group).await);
        for locks in [usual, short, built] {
            close(locks).await;
        }
    }
}

/// A token is kept for twice the lease, even if an extension made the lease that long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_extension_keeps_the_token_for_its_lease() {
    let place = servers(TopologyKind::Standalone).await;
    for client in CLIENTS {
        let locks = connect(&url(&url_for(&place, client), "token_retention=1m")).await;
        let name = unique("extended");
        let guard = locks.lock(&*name).acquire().await.unwrap();
        about(MINUTE, kept(&place, &name).await);
        guard.extend(MINUTE * 10).await.unwrap();
        about(MINUTE * 25, kept(&place, &name).await);
        guard.extend(MINUTE).await.unwrap();
        about(MINUTE * 25, kept(&place, &name).await);
        guard.release().await.unwrap();
        close(locks).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_that_is_handed_on_is_kept_as_long() {
    let place = servers(TopologyKind::Standalone).await;
    for client in CLIENTS {
        let base = url_for(&place, client);
        let (one, other) = (connect(&base).await, connect(&base).await);
        let name = unique("handed");
        let request = |locks: &Locktopus| {
            locks
                .lock(&*name)
                .token_retention(MINUTE * 5)
                .strategy(HANDED)
        };
        let guard = request(&one).acquire().await.unwrap();
        let waiting = tokio::spawn(request(&other).acquire());
        let queue = format!("locktopus_queue:{{{name}}}");
        eventually("a waiter", SOON, async || {
            match ask(&place, &["EXISTS", &queue]).await {
                0 => Err("nobody queues"),
                _ => Ok(()),
            }
        })
        .await;
        guard.release().await.unwrap();
        let heir = waiting.await.unwrap().unwrap();
        about(MINUTE * 5, kept(&place, &name).await);
        heir.release().await.unwrap();
        close_both(one, other).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_out_of_bounds_is_refused() {
    let locks = connect("memory:").await;
    for keep in [Duration::ZERO, Duration::from_secs(59), Duration::MAX] {
        let refused = locks
            .lock("a")
            .token_retention(keep)
            .acquire()
            .await
            .map(drop);
        assert!(
            matches!(&refused, Err(LockError::Option(error)) if error.option == "token_retention"),
            "{refused:?}"
        );
        let refused = connect_with("memory:", |builder| builder.token_retention(keep)).await;
        assert!(refused.is_err(), "{keep:?}");
    }
}

/// The bytes of all data on a server, and the number of keys.
async fn used(place: &Deployment) -> (i64, usize) {
    let keys = place.nodes()[0].command(&["KEYS", "*"]).await.unwrap();
    let mut bytes = 0;
    for key in keys.items() {
        let usage = ["MEMORY", "USAGE", &key.text(), "SAMPLES", "0"];
        let reply = place.nodes()[0].command(&usage).await.unwrap();
        // Gone since it was listed.
        bytes += reply.text().parse::<i64>().unwrap_or(0);
    }
    (bytes, keys.items().len())
}

/// A name as long as those in docs/memory.md.
const NAME: &str = "request:8f14e45f-ceea-467f-a8f1-5d5c4e0a9f3b";

/// The number in docs/memory.md between these words.
fn promised(before: &str, after: &str) -> i64 {
    let page = include_str!("../../../../docs/memory.md");
    let page: String = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, rest) = page.split_once(before).expect(before);
    let (number, _) = rest.split_once(after).expect(after);
    number.replace(',', "").parse().expect("a number")
}

/// Allocators and versions differ by some bytes. Users must know about larger changes, in either
/// direction.
fn as_promised(what: &str, found: i64, promised: i64) {
    println!("{what}: {found} bytes, {promised} promised");
    assert!(
        (found - promised).abs() * 8 <= promised,
        "{what}: {found} bytes, docs/memory.md says {promised}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_costs_what_the_page_says() {
    let place = servers(TopologyKind::Standalone).await;
    let locks = connect(&url_for(&place, "redis")).await;
    let unused = promised("after its last grant | ", " by `MEMORY USAGE`");
    let single = locks.mutex_as(NAME, MutexProfile::single_key());
    for (what, request, keys) in [
        ("lock", locks.lock(NAME), 1),
        ("mutex", locks.mutex(NAME), 1),
        ("mutex, single key", single, 0),
    ] {
        place.nodes()[0].command(&["FLUSHALL"]).await.unwrap();
        request.acquire().await.unwrap().release().await.unwrap();
        let left = used(&place).await;
        assert_eq!(left.1, keys, "{what}");
        as_promised(what, left.0, unused * i64::try_from(keys).unwrap());
    }
    place.nodes()[0].command(&["FLUSHALL"]).await.unwrap();
    let guard = locks.lock(NAME).acquire().await.unwrap();
    let (held, _) = used(&place).await;
    let said = promised("its keys have ", " bytes by `MEMORY USAGE`");
    as_promised("held", held, said);

    let other = connect(&url_for(&place, "redis")).await;
    let waiting = tokio::spawn(other.lock(NAME).strategy(HANDED).acquire());
    let queue = format!("locktopus_queue:{{{NAME}}}");
    eventually("a waiter", SOON, async || {
        match ask(&place, &["EXISTS", &queue]).await {
            0 => Err("nobody queues"),
            _ => Ok(()),
        }
    })
    .await;
    let (waited_for, _) = used(&place).await;
    let said = promised("the first waiter in the queue adds ", ".");
    as_promised("waiter", waited_for - held, said);
    guard.release().await.unwrap();
    waiting.await.unwrap().unwrap().release().await.unwrap();
    close_both(locks, other).await;
}

/// As [`FILL`], with names as long as the page's.
const FILL_LONG: &str = "for i = 1, 10000 do \
    redis.call('SET', string.format('redisson_lock_token:{request:%036d}', ARGV[1] * 10000 + i), \
    '1795359927943249', 'EX', 600) end";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_names_cost_what_the_page_says() {
    const PARTS: i64 = 10;
    let place = servers(TopologyKind::Standalone).await;
    let memory = async || {
        let used = place.nodes()[0]
            .info("memory", "used_memory")
            .await
            .unwrap();
        used.unwrap().parse::<i64>().unwrap()
    };
    let before = memory().await;
    for part in 0..PARTS {
        let fill = ["EVAL", FILL_LONG, "0", &part.to_string()];
        place.nodes()[0].command(&fill).await.unwrap();
    }
    let each = (memory().await - before) / (PARTS * 10_000);
    let said = promised("by `MEMORY USAGE`, ", " with its places");
    as_promised("of many", each, said);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_names_that_are_used_once_are_noticed() {
    let place = servers(TopologyKind::Standalone).await;
    for client in CLIENTS {
        let locks = connect(&url_for(&place, client)).await;
        let about = |diagnosis: locktopus::Diagnosis| {
            let mut findings = diagnosis.findings.into_iter();
            findings.find(|found| found.check == "token retention")
        };
        place.nodes()[0].command(&["FLUSHALL"]).await.unwrap();
        assert_eq!(about(locks.diagnose().await.unwrap()), None);
        for part in 0..15 {
            let fill = ["EVAL", FILL, "0", &format!("{part}-")];
            place.nodes()[0].command(&fill).await.unwrap();
        }
        let found = about(locks.diagnose().await.unwrap()).expect("advice");
        assert_eq!(found.severity, Severity::Note);
        assert!(found.message.contains("about 150 thousand keys"), "{found}");
        close(locks).await;
    }
}
