//! Libraries that wake their waiters: python-redis-lock and Spring's registry.

use std::time::Duration;

use locktopus::{LockError, MutexProfile, NameError, WaitStrategy};
use locktopus_servers::topology::TopologyKind;
use tokio::time::Instant;

use crate::common::raw::{Raw, Value};
use crate::common::{
    ONLY_MESSAGES, SOON, close, connect, eventually, locks, plain_url_for, unique,
};
use crate::wire::At;

/// python-redis-lock's release: pushes a one onto the list for its waiters. ARGV[2] is how long the
/// list stays.
const PY_RELEASE: &str = "
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 1 end
redis.call('DEL', KEYS[2])
redis.call('LPUSH', KEYS[2], 1)
redis.call('PEXPIRE', KEYS[2], ARGV[2])
redis.call('DEL', KEYS[1])
return 0";

/// Spring's release in pub/sub mode.
const SPRING_RELEASE: &str = "
if redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('UNLINK', KEYS[1]) == 1 then
  redis.call('PUBLISH', ARGV[2], KEYS[1])
  return true
end
return false";

const SPRING_OBTAIN: &str = "
local value = redis.call('GET', KEYS[1])
if value and value ~= ARGV[1] then return false end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return true";

const PY_VALUE: &str = "q80BI0VniavN7wEjRWeJqxEi";
const REGISTRY: &str = "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed";

fn is_cluster(at: &At) -> bool {
    matches!(at.0.kind(), TopologyKind::Cluster { .. })
}

pub(crate) async fn python((place, client): At) -> String {
    let cluster = is_cluster(&(place.clone(), client));
    let locks = locks(&place, client).await;
    let plain = unique("py");
    let name = if cluster {
        let request = locks.mutex_as(&plain, MutexProfile::python_redis_lock());
        let refused = request.try_acquire().await;
        assert!(
            matches!(refused, Err(LockError::Name(NameError::Refused { .. }))),
            "lock and list are in two slots: {refused:?}"
        );
        format!("{{{plain}}}")
    } else {
        plain
    };
    let (key, list) = (format!("lock:{name}"), format!("lock-signal:{name}"));
    let request = || locks.mutex_as(&name, MutexProfile::python_redis_lock());
    let node = place.primary_for(&key).await.unwrap();
    let (mut raw, mut blocked) = (Raw::to(node).await, Raw::to(node).await);

    // They hold, in whole seconds; ours polls.
    let set = ["SET", &key, PY_VALUE, "NX", "EX", "20"];
    assert_eq!(raw.say(&set).await.text(), "OK");
    assert!(request().try_acquire().await.unwrap().is_none());
    let waiter = tokio::spawn(
        request()
            .fixed_lease(Duration::from_millis(8_400))
            .acquire(),
    );
    let begun = Instant::now();
    let release = ["EVAL", PY_RELEASE, "2", &key, &list, PY_VALUE, "1000"];
    assert_eq!(raw.say(&release).await.int(), 0);
    let guard = waiter.await.unwrap().unwrap();
    let polled = begun.elapsed();
    assert!(polled < SOON, "{polled:?}");
    assert_eq!(guard.owner_id().expose().len(), 24);
    // Rounded up to their unit.
    let left = raw.say(&["PTTL", &key]).await.int();
    assert!((8_400..=9_000).contains(&left), "{left} ms");
    assert!(guard.remaining() <= Duration::from_millis(8_400));
    guard.extend(Duration::from_millis(12_100)).await.unwrap();
    let left = raw.say(&["PTTL", &key]).await.int();
    assert!((12_100..=13_000).contains(&left), "{left} ms");

    // Ours hold, theirs block on the list.
    raw.say(&["DEL", &list]).await;
    let blocking = tokio::spawn(async move {
        let answer = blocked.say(&["BLPOP", &list, "4"]).await;
        (answer, blocked, list)
    });
    eventually("a blocked client", SOON, async || {
        let info = raw.say(&["INFO", "clients"]).await.text();
        match info.contains("blocked_clients:0") {
            false => Ok(()),
            true => Err(info),
        }
    })
    .await;
    assert_eq!(raw.say(&set).await, Value::Nil);
    guard.release().await.unwrap();
    let (answer, _blocked, list) = blocking.await.unwrap();
    assert_eq!(answer.text(), format!("{list} 1"));
    assert_eq!(raw.say(&set).await.text(), "OK");
    // If no waiter blocks, the notification stays for a second.
    let evicted = request().force_release("test").await.unwrap();
    assert_eq!(evicted.evicted.len(), 1);
    assert_eq!(raw.say(&["LRANGE", &list, "0", "-1"]).await.text(), "1");
    let stays = raw.say(&["PTTL", &list]).await.int();
    assert!((1..=1_000).contains(&stays), "{stays} ms");
    // A failed release notifies no one.
    raw.say(&["DEL", &list]).await;
    let guard = request().acquire().await.unwrap();
    raw.say(&["SET", &key, PY_VALUE]).await;
    assert!(guard.release().await.is_err());
    assert_eq!(raw.say(&["EXISTS", &list]).await.int(), 0);
    raw.say(&["DEL", &key]).await;
    close(locks).await;
    format!("polled for {polled:.2?}")
}

pub(crate) async fn spring((place, client): At) -> String {
    // The suite's user may not use another library's channel.
    let locks = connect(&plain_url_for(&place, client)).await;
    let name = unique("path");
    let (key, channel) = (
        format!("orders:{name}"),
        format!("orders-channel:orders:{name}"),
    );
    let profile = MutexProfile::spring("orders").unwrap();
    let request = || locks.mutex_as(&name, profile.clone());
    let node = place.primary_for(&key).await.unwrap();
    let mut raw = Raw::to(node).await;
    // Their listener may be on another node: the message goes to the whole cluster.
    let elsewhere = place
        .nodes()
        .iter()
        .find(|other| other.name() != node.name());
    let mut listener = Raw::to(elsewhere.unwrap_or(node)).await;
    listener.say(&["PSUBSCRIBE", "orders-channel:*"]).await;

    // They hold; only their message wakes ours.
    let obtain = ["EVAL", SPRING_OBTAIN, "1", &key, REGISTRY, "60000"];
    assert_eq!(raw.say(&obtain).await.int(), 1);
    assert_eq!(raw.say(&obtain).await.int(), 1, "the registry has it");
    let waiting = request().strategy(ONLY_MESSAGES);
    let waiter = tokio::spawn(async move { (waiting.acquire().await.unwrap(), Instant::now()) });
    eventually("a subscription", SOON, async || {
        let mut count = 0;
        for node in place.nodes() {
            let mut raw = Raw::to(node).await;
            count += raw.say(&["PUBSUB", "NUMSUB", &channel]).await.list()[1].int();
        }
        match count {
            1 => Ok(()),
            count => Err(count),
        }
    })
    .await;
    let release = ["EVAL", SPRING_RELEASE, "1", &key, REGISTRY, &channel];
    let begun = Instant::now();
    assert_eq!(raw.say(&release).await.int(), 1);
    let (guard, woken) = waiter.await.unwrap();
    let took = woken.saturating_duration_since(begun);
    assert!(took < SOON, "{took:?}");
    heard(&mut listener, &channel, &key).await;

    // Ours hold; they hear which lock is free.
    assert_eq!(raw.say(&obtain).await, Value::Nil);
    guard.release().await.unwrap();
    heard(&mut listener, &channel, &key).await;
    assert_eq!(raw.say(&obtain).await.int(), 1);
    assert_eq!(
        request().force_release("test").await.unwrap().evicted.len(),
        1
    );
    heard(&mut listener, &channel, &key).await;

    // Two of our acquisitions count as two registries.
    let first = request().acquire().await.unwrap();
    assert!(request().try_acquire().await.unwrap().is_none());
    let spin = WaitStrategy::Poll {
        min: Duration::from_millis(1),
        max: Duration::from_millis(20),
    };
    let others = [ONLY_MESSAGES, spin].map(|strategy| {
        let request = request().strategy(strategy);
        tokio::spawn(async move { request.acquire().await.unwrap().release().await })
    });
    first.release().await.unwrap();
    for other in others {
        other.await.unwrap().unwrap();
    }
    close(locks).await;
    format!("woken after {took:.2?}")
}

/// The next message of this lock; others belong to other cases.
async fn heard(listener: &mut Raw, channel: &str, key: &str) {
    loop {
        let said = listener.hear().await;
        let [kind, _pattern, from, payload] = said.list() else {
            panic!("{said:?}");
        };
        assert_eq!(kind.text(), "pmessage");
        if from.text() == channel {
            assert_eq!(payload.text(), key);
            return;
        }
    }
}
