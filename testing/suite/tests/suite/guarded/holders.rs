//! Which holders may write.

use std::time::Duration;

use locktopus::{Fence, GuardedOutcome, OwnerId, StaleCause};
use tokio::task::JoinSet;

use crate::common::raw::Value;
use crate::common::{close, locks, unique};
use crate::guarded::{At, fence, is_written, mark_of, raw, stored, writer};

const LEASE: Duration = Duration::from_secs(20);

/// The whole story: a holder loses its lock unnoticed, its successor writes, and then it writes
/// too.
pub(crate) async fn overtaken(at: At) -> String {
    let (name, key) = (unique("story"), unique("data"));
    let (client, writer) = writer(&at).await;
    let locks = locks(&at.0, at.1).await;
    let (mut of_lock, mut of_key) = (raw(&at.0, &name).await, raw(&at.0, &key).await);

    let first = locks
        .lock(&name)
        .fixed_lease(LEASE)
        .acquire()
        .await
        .unwrap();
    let old = first.fence().unwrap();
    for value in [&b"old"[..], b"old again"] {
        assert!(is_written(
            &writer.set(&old, key.as_bytes(), value).await.unwrap()
        ));
    }
    of_lock.say(&["DEL", &name]).await;
    let second = locks
        .lock(&name)
        .fixed_lease(LEASE)
        .acquire()
        .await
        .unwrap();
    let new = second.fence().unwrap();
    assert!(new > old);
    assert!(is_written(
        &writer
            .set(&new, key.as_bytes(), b"new\0\xff")
            .await
            .unwrap()
    ));

    let refused = GuardedOutcome::Stale {
        newest: new.token(),
        cause: StaleCause::Overtaken,
    };
    assert_eq!(
        writer.set(&old, key.as_bytes(), b"late").await.unwrap(),
        refused
    );
    assert_eq!(writer.delete(&old, key.as_bytes()).await.unwrap(), refused);
    assert_eq!(of_key.say(&["GET", &key]).await.bytes(), b"new\0\xff");
    let expected = [
        format!("lock:{name}"),
        new.token().to_string(),
        mark_of(&new),
    ];
    assert_eq!(stored(&mut of_key, &key).await, expected);

    assert!(is_written(
        &writer.delete(&new, key.as_bytes()).await.unwrap()
    ));
    assert_eq!(of_key.say(&["EXISTS", &key]).await, Value::Int(0));
    // A late write cannot restore a deleted key.
    assert_eq!(
        writer.set(&old, key.as_bytes(), b"late").await.unwrap(),
        refused
    );
    assert_eq!(of_key.say(&["EXISTS", &key]).await, Value::Int(0));

    drop(first);
    second.release().await.unwrap();
    close(locks).await;
    client.close().await;
    format!("{} refused after {}", old.token(), new.token())
}

/// A server that forgot a grant gave its token to another owner too.
pub(crate) async fn shared_token(at: At) -> String {
    let key = unique("data");
    let (client, writer) = writer(&at).await;
    let mut raw = raw(&at.0, &key).await;
    let anonymous = fence("shared", 5);
    let [x, y] = [(); 2].map(|()| anonymous.clone().held_by(&OwnerId::generate()));
    let set = async |fence: &Fence| writer.set(fence, key.as_bytes(), b"v").await.unwrap();

    assert!(is_written(&set(&anonymous).await));
    assert!(is_written(&set(&x).await), "nobody was known to hold it");
    let refused = GuardedOutcome::Stale {
        newest: x.token(),
        cause: StaleCause::SharedToken,
    };
    assert_eq!(set(&y).await, refused);
    assert!(is_written(&set(&anonymous).await));
    assert_eq!(
        stored(&mut raw, &key).await[2],
        mark_of(&x),
        "forgotten whose it is"
    );
    assert_eq!(set(&y).await, refused);
    let next = fence("shared", 6).held_by(&OwnerId::generate());
    assert!(is_written(&set(&next).await));
    assert_eq!(stored(&mut raw, &key).await[2], mark_of(&next));
    client.close().await;
    "the first one is believed".to_owned()
}

/// Holders of all times at once, with the largest tokens that a double can represent.
pub(crate) async fn crowd(at: At) -> String {
    const WRITERS: u64 = 200;
    const LARGEST: u64 = (1 << 53) - 1;
    let key = unique("data");
    let (client, writer) = writer(&at).await;
    let mut writes = JoinSet::new();
    for n in 0..WRITERS {
        // Unordered: 77 and 200 have no common factor.
        let token = LARGEST - (n * 77 + 100) % WRITERS;
        let (writer, key) = (writer.clone(), key.clone());
        writes.spawn(async move {
            let value = token.to_string();
            let fence = fence("crowd", token);
            let outcome = writer.set(&fence, key.as_bytes(), value.as_bytes()).await;
            (token, outcome.unwrap())
        });
    }
    let mut written = 0;
    for (token, outcome) in writes.join_all().await {
        match outcome {
            GuardedOutcome::Written => written += 1,
            GuardedOutcome::Stale { newest, .. } => assert!(newest.get() > token),
            GuardedOutcome::OtherLock { lock } => panic!("{lock}"),
        }
    }
    let mut raw = raw(&at.0, &key).await;
    assert_eq!(raw.say(&["GET", &key]).await.text(), LARGEST.to_string());
    assert_eq!(stored(&mut raw, &key).await[1], LARGEST.to_string());
    client.close().await;
    format!("{written} of {WRITERS} wrote")
}
