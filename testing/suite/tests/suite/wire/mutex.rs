//! Mutexes shared with libraries that use `SET key value NX PX` and compare-and-delete.

use std::time::Duration;

use locktopus::{LockError, Locktopus, MutexProfile, ValueEncoding};
use locktopus_servers::topology::Deployment;

use crate::common::raw::{Raw, Value};
use crate::common::{close, locks, unique};
use crate::wire::At;

/// The unlock script of the whole family.
const DELETE_IF: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end";

const ENCODINGS: [(ValueEncoding, usize); 5] = [
    // A uuid, a colon and a number of up to 20 characters.
    (ValueEncoding::Owner, 0),
    (ValueEncoding::Hex32, 32),
    (ValueEncoding::Base64, 24),
    (ValueEncoding::Uuid, 36),
    (ValueEncoding::Raw20, 20),
];

const TEMPLATES: [&str; 4] = [
    "{name}",
    "redlock:{name}",
    "distributed-lock:{name}",
    "job-lock:default:{name}",
];

pub(crate) async fn profiles((place, client): At) -> String {
    let locks = locks(&place, client).await;
    let mut tried = 0;
    for (encoding, length) in ENCODINGS {
        for template in TEMPLATES {
            for profile in [MutexProfile::single_key(), MutexProfile::default()] {
                let profile = profile.key_template(template).unwrap().value(encoding);
                excludes_both_ways(&place, &locks, profile, length).await;
                tried += 1;
            }
        }
    }
    close(locks).await;
    format!("{tried} profiles")
}

async fn excludes_both_ways(
    place: &Deployment,
    locks: &Locktopus,
    profile: MutexProfile,
    length: usize,
) {
    let name = unique("shared");
    let key = profile.key(&locktopus::LockName::new(&name).unwrap());
    let request = || {
        locks
            .mutex_as(&name, profile.clone())
            .fixed_lease(Duration::from_secs(10))
    };
    let mut raw = Raw::to(place.primary_for(&key).await.unwrap()).await;
    // Not text: every library treats values as bytes.
    let theirs: &[u8] = b"\x00\xff\r\n their value \x80";
    let set = [&b"SET"[..], key.as_bytes(), theirs, b"NX", b"PX", b"10000"];
    let delete_if = |value: Vec<u8>| {
        let key = key.clone().into_bytes();
        [
            b"EVAL".to_vec(),
            DELETE_IF.into(),
            b"1".to_vec(),
            key,
            value,
        ]
    };

    assert_eq!(raw.ask(&set).await.text(), "OK");
    assert!(
        request().try_acquire().await.unwrap().is_none(),
        "{profile:?}"
    );
    let held = request()
        .wait_at_most(Duration::from_millis(30))
        .acquire()
        .await;
    assert!(
        matches!(held, Err(LockError::WaitTimeout { .. })),
        "{held:?}"
    );
    assert_eq!(raw.ask(&slices(&delete_if(theirs.to_vec()))).await.int(), 1);

    let guard = request().acquire().await.unwrap();
    let value = raw.say(&["GET", &key]).await;
    assert_eq!(value.bytes(), guard.owner().expose(), "{profile:?}");
    assert!(length == 0 || value.bytes().len() == length, "{value:?}");
    assert_eq!(raw.ask(&set).await, Value::Nil, "{profile:?}");
    assert_eq!(raw.ask(&slices(&delete_if(theirs.to_vec()))).await.int(), 0);
    assert_eq!(raw.say(&["GET", &key]).await, value);
    let token_key = format!("redisson_lock_token:{{{key}}}");
    let side_keys = raw.say(&["EXISTS", &token_key]).await.int();
    assert_eq!(side_keys == 1, profile.has_side_keys(), "{profile:?}");
    guard.release().await.unwrap();
    assert_eq!(raw.say(&["EXISTS", &key]).await.int(), 0);

    // Ours was taken away: the release must return an error and not delete theirs.
    let guard = request().acquire().await.unwrap();
    raw.say(&["DEL", &key]).await;
    assert_eq!(raw.ask(&set).await.text(), "OK");
    let released = guard.release().await;
    assert!(
        matches!(released, Err(LockError::Lost { .. })),
        "{released:?}"
    );
    assert_eq!(raw.say(&["GET", &key]).await.bytes(), theirs);

    // A library that was given our value can release for us.
    raw.say(&["DEL", &key]).await;
    let guard = request().acquire().await.unwrap();
    let given = delete_if(guard.owner().expose().to_vec());
    assert_eq!(raw.ask(&slices(&given)).await.int(), 1);
    let released = guard.release().await;
    assert!(
        matches!(released, Err(LockError::Lost { .. })),
        "{released:?}"
    );
}

fn slices(words: &[Vec<u8>]) -> Vec<&[u8]> {
    words.iter().map(Vec::as_slice).collect()
}
