//! Which holders may write.

use std::time::Duration;

use locktopus::{GuardedOutcome, StaleCause};

use crate::common::raw::Value;
use crate::common::{close, locks, unique};
use crate::guarded::{At, is_written, mark_of, raw, stored, writer};

const LEASE: Duration = Duration::from_secs(20);

/// The whole story: a holder loses its lock unnoticed, its successor writes, and then it writes
/// too.
pub(crate) async fn overtaken(at: At) -> String {
    let (name, key) = (unique("story"), unique("data"));
    let (client, writer) = writer(&at).await;
    let locks = locks(&at.0, at.1).await;
    let (mut of_lock, mut of_key) = (raw(&at.0, &name).await, raw(&at.0, &key).await);

    let request = locks.lock(&name).fixed_lease(LEASE);
    let first = request.acquire().await.unwrap();
    let old = first.fence().unwrap();
    for value in [&b"old"[..], b"old again"] {
        assert!(is_written(
            &writer.set(&old, key.as_bytes(), value).await.unwrap()
        ));
    }
    of_lock.say(&["DEL", &name]).await;
    let request = locks.lock(&name).fixed_lease(LEASE);
    let second = request.acquire().await.unwrap();
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
