//! One name used as two kinds of lock, or for other data.

use locktopus::{BackendErrorKind, Executed, LockError, LockRequest, MutexProfile};
use locktopus_servers::topology::Node;

use crate::common::raw::{Raw, Value};
use crate::common::{chain, close, locks, unique};
use crate::wire::At;

pub(crate) async fn mixed((place, client): At) -> String {
    let locks = locks(&place, client).await;
    let mut seen = String::new();
    for key_is in ["lock", "mutex", "list"] {
        let name = unique("mixed");
        let node = place.primary_for(&name).await.unwrap();
        let mut raw = Raw::to(node).await;
        let guard = match key_is {
            "lock" => Some(locks.lock(&name).acquire().await.unwrap()),
            "mutex" => Some(locks.mutex(&name).acquire().await.unwrap()),
            _ => {
                raw.say(&["RPUSH", &name, "a", "b"]).await;
                None
            }
        };
        let before = picture(node, &name).await;
        for (asked, request) in [("lock", locks.lock(&name)), ("mutex", locks.mutex(&name))] {
            if asked != key_is {
                seen = refused(request).await;
            }
        }
        assert_eq!(picture(node, &name).await, before, "{key_is}");
        if let Some(guard) = guard {
            guard.release().await.unwrap();
        }
    }
    close(locks).await;
    seen
}

/// At once, without the delay of an outage, and with the reason.
async fn refused(request: LockRequest) -> String {
    let errors = [
        request.clone().acquire().await.map(drop).unwrap_err(),
        request.clone().try_acquire().await.map(drop).unwrap_err(),
        request.inspect().await.map(drop).unwrap_err(),
    ];
    errors.iter().map(told).next_back().unwrap()
}

/// The text of such an error.
fn told(error: &LockError) -> String {
    let LockError::Backend { source, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!(source.kind(), BackendErrorKind::OtherKind, "{error:?}");
    assert_eq!(source.executed(), Executed::No, "{error:?}");
    let found = error.other_kind().unwrap();
    assert!(source.to_string().contains(&found.found), "{source}");
    chain(error)
}

/// All data that an attempt could have written, except the remaining lifetimes.
async fn picture(node: &Node, name: &str) -> Vec<Value> {
    let mut raw = Raw::to(node).await;
    let mut seen = vec![raw.say(&["PEXPIRETIME", name]).await];
    let pattern = format!("*{name}*");
    let keys = raw.say(&["KEYS", &pattern]).await;
    let mut keys: Vec<_> = keys.list().iter().map(Value::text).collect();
    keys.sort_unstable();
    for key in keys {
        seen.push(Value::Bytes(key.clone().into_bytes()));
        seen.push(raw.say(&["DUMP", &key]).await);
    }
    seen
}

/// Data of other programs under a name, as the commands that create it. The flags say whether it
/// could be another library's mutex, and whether it could be a number of Redisson's: we cannot tell
/// such data apart.
const FOREIGN: [(&[&str], bool, bool); 9] = [
    (&["SET", "KEY", "7"], false, true),
    (&["SET", "KEY", "7", "PX", "60000"], true, true),
    (&["SET", "KEY", "some text"], true, false),
    (&["RPUSH", "KEY", "a", "b"], false, false),
    (&["SADD", "KEY", "a", "b"], false, false),
    (&["ZADD", "KEY", "1", "a"], false, false),
    (&["XADD", "KEY", "1-1", "a", "b"], false, false),
    (&["HSET", "KEY", "field", "1"], false, false),
    (&["HSET", "KEY", "a", "1", "b", "2"], false, false),
];

/// If another program stores data under a name, every kind that can detect it refuses the name, and
/// the data stays unchanged.
pub(crate) async fn foreign((place, client): At) -> String {
    let locks = locks(&place, client).await;
    let mut refusals = 0;
    for (made, like_a_mutex, like_a_number) in FOREIGN {
        let name = unique("foreign");
        let node = place.primary_for(&name).await.unwrap();
        let made = about(&name, made);
        let made: Vec<_> = made.iter().map(String::as_str).collect();
        Raw::to(node).await.say(&made).await;
        let before = picture(node, &name).await;

        let rw = locks.rw_lock(&name);
        let holds = [
            (locks.lock(&name), false),
            (locks.fair_lock(&name), false),
            (rw.read(), false),
            (locks.mutex(&name), like_a_mutex),
            (
                locks.mutex_as(&name, MutexProfile::single_key()),
                like_a_mutex,
            ),
            (locks.semaphore(&name).permits(9), like_a_number),
            (locks.permit_semaphore(&name).permits(9), like_a_number),
        ];
        for (request, alike) in holds {
            if alike {
                // A permit semaphore knows all its holders, so there are fewer than nine in all.
                match request.clone().try_acquire().await {
                    Ok(taken) => assert!(taken.is_none(), "{made:?} was taken as {request:?}"),
                    Err(error) => assert!(error.too_few_permits().is_some(), "{made:?}: {error}"),
                }
                continue;
            }
            refused(request.clone()).await;
            told(&request.force_release("a test").await.unwrap_err());
            refusals += 1;
        }
        let written = rw.write().acquire().await.map(drop);
        told(&written.unwrap_err());
        if !like_a_number {
            for semaphore in [locks.semaphore(&name), locks.permit_semaphore(&name)] {
                told(&semaphore.available().await.unwrap_err());
                told(&semaphore.initialise(1).await.unwrap_err());
                told(&semaphore.resize(1).await.unwrap_err());
                told(&semaphore.add(1).await.unwrap_err());
                told(&semaphore.drain().await.unwrap_err());
                told(&semaphore.delete().await.unwrap_err());
            }
            let latch = locks.latch(&name);
            told(&latch.count().await.unwrap_err());
            told(&latch.initialise(1).await.unwrap_err());
            told(&latch.count_down().await.unwrap_err());
            told(&latch.delete().await.unwrap_err());
        }
        assert_eq!(picture(node, &name).await, before, "{made:?}");
    }
    close(locks).await;
    format!("{refusals} kinds refused, nothing written")
}

/// A command about this key.
fn about(name: &str, command: &[&str]) -> Vec<String> {
    let filled = command.iter().map(|word| match *word {
        "KEY" => name.to_owned(),
        word => word.to_owned(),
    });
    filled.collect()
}
