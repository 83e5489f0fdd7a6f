//! Another client that speaks Redisson's protocol holds, releases and takes away locks.

use std::time::Duration;

use locktopus::{LockError, LostCause};
use tokio::time::Instant;

use crate::common::raw::{Raw, Value};
use crate::common::{ONLY_MESSAGES, SOON, close, eventually, locks, unique};
use crate::wire::At;
use crate::wire::layout::flavour;

/// A Java client's thread: uuid version 4.
const JAVA: &str = "71b96ce8-2746-4c1a-9b6e-0d2c1f0a9d11:53";

/// Redisson's last unlock.
const UNLOCK: &str = "redis.call('DEL', KEYS[1]); return redis.call(ARGV[1], KEYS[2], '0')";

/// A lock that Java holds twice blocks us until it is released, and the message alone wakes us.
pub(crate) async fn holder((place, client): At) -> String {
    let name = unique("java");
    let channel = format!("redisson_lock__channel:{{{name}}}");
    let locks = locks(&place, client).await;
    let mut raw = Raw::to(place.primary_for(&name).await.unwrap()).await;
    raw.say(&["HSET", &name, JAVA, "2"]).await;
    raw.say(&["PEXPIRE", &name, "80000"]).await;

    assert!(locks.lock(&name).try_acquire().await.unwrap().is_none());
    let state = locks.lock(&name).inspect().await.unwrap();
    let holder = state.holder().unwrap();
    assert_eq!((holder.owner.expose(), holder.holds), (JAVA.as_bytes(), 2));

    let request = locks.lock(&name).strategy(ONLY_MESSAGES);
    let waiter = tokio::spawn(async move { (request.acquire().await.unwrap(), Instant::now()) });
    let (publish, subscribe, _) = flavour(&place);
    let count = if subscribe == "SSUBSCRIBE" {
        "SHARDNUMSUB"
    } else {
        "NUMSUB"
    };
    eventually("a subscription", SOON, async || {
        match raw.say(&["PUBSUB", count, &channel]).await.list() {
            [_, Value::Int(1)] => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    assert_eq!(raw.say(&["HINCRBY", &name, JAVA, "-1"]).await.int(), 1);
    assert!(locks.lock(&name).try_acquire().await.unwrap().is_none());

    let released = Instant::now();
    let heard = raw
        .say(&["EVAL", UNLOCK, "2", &name, &channel, publish])
        .await;
    assert_eq!(heard.int(), 1, "one subscription for the process");
    let (guard, woken) = waiter.await.unwrap();
    let took = woken - released;
    assert!(took < SOON, "{took:?}");
    // Java can neither unlock nor re-enter it any more.
    assert_eq!(raw.say(&["HEXISTS", &name, JAVA]).await.int(), 0);
    guard.release().await.unwrap();
    close(locks).await;
    format!("woken {took:.2?} after the message")
}

/// Another client deletes our lock and acquires it: we notice, and do not delete theirs.
pub(crate) async fn thief((place, client): At) -> String {
    let name = unique("thief");
    let locks = locks(&place, client).await;
    let mut raw = Raw::to(place.primary_for(&name).await.unwrap()).await;

    let guard = locks
        .lock(&name)
        .renewed_lease(Duration::from_millis(900))
        .acquire()
        .await
        .unwrap();
    let token = guard.token().unwrap();
    let begun = Instant::now();
    raw.say(&["DEL", &name]).await;
    raw.say(&["HSET", &name, JAVA, "1"]).await;
    let cause = tokio::time::timeout(SOON, guard.lost()).await.unwrap();
    assert_eq!(cause, LostCause::TakenOver);
    let noticed = begun.elapsed();
    let released = guard.release().await;
    assert!(
        matches!(
            &released,
            Err(LockError::Lost {
                cause: LostCause::TakenOver,
                ..
            })
        ),
        "{released:?}"
    );
    assert_eq!(raw.say(&["HGET", &name, JAVA]).await.text(), "1");

    raw.say(&["DEL", &name]).await;
    let next = locks.lock(&name).acquire().await.unwrap();
    assert!(next.token().unwrap() > token);
    next.release().await.unwrap();
    close(locks).await;
    format!("noticed after {noticed:.2?}")
}
