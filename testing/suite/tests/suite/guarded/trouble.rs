//! Errors, and what is left, when something is wrong.

use std::time::Duration;

use locktopus::{BackendErrorKind, Executed, GuardedOutcome};

use crate::common::raw::Value;
use crate::common::{SOON, eventually, unique};
use crate::guarded::{At, fence, is_written, raw, stored, writer};

/// Other data occupies the key of the fence: the write is refused and changes nothing.
pub(crate) async fn no_fence(at: At) -> String {
    let (client, writer) = writer(&at).await;
    let mut last = String::new();
    for (command, kind) in [
        (&["SET", "KEY", "x"][..], BackendErrorKind::Protocol),
        (
            &["HSET", "KEY", "lock", "lock:a"],
            BackendErrorKind::Protocol,
        ),
        (&["HSET", "KEY", "token", "5"], BackendErrorKind::Protocol),
        (
            &["HSET", "KEY", "lock", "lock:a", "token", "x"],
            BackendErrorKind::Protocol,
        ),
        (
            &["HSET", "KEY", "lock", "lock:a", "token", "nan"],
            BackendErrorKind::Protocol,
        ),
        (
            &["HSET", "KEY", "lock", "lock:a", "token", "0"],
            BackendErrorKind::Protocol,
        ),
        (
            &["HSET", "KEY", "lock", "lock:a", "token", "9007199254740992"],
            BackendErrorKind::Protocol,
        ),
    ] {
        let key = unique("data");
        let fence_key = format!("locktopus_fence:{{{key}}}");
        let mut raw = raw(&at.0, &key).await;
        let words: Vec<_> = command
            .iter()
            .map(|word| if *word == "KEY" { &fence_key } else { *word })
            .collect();
        raw.say(&words).await;
        let before = raw.say(&["DUMP", &fence_key]).await;
        let error = writer
            .set(&fence("a", 5), key.as_bytes(), b"v")
            .await
            .unwrap_err();
        assert_eq!(
            (error.kind(), error.executed()),
            (kind, Executed::No),
            "{error:?}"
        );
        assert_eq!(
            raw.say(&["EXISTS", &key]).await,
            Value::Int(0),
            "{command:?}"
        );
        assert_eq!(raw.say(&["DUMP", &fence_key]).await, before, "{command:?}");
        last = error.to_string();
    }
    client.close().await;
    last
}

/// The script is forgotten, and then the server hangs. The caller learns that the write may have
/// run, and its reaction cannot harm the next holder.
pub(crate) async fn forgetful_and_frozen(at: At) -> String {
    let key = unique("data");
    let bytes = key.as_bytes();
    let node = &at.0.nodes()[0];
    let (client, writer) = writer(&at).await;
    let hasty = writer.clone().timeout(Duration::from_millis(300));
    let mut raw = raw(&at.0, &key).await;

    assert!(is_written(
        &writer.set(&fence("a", 5), bytes, b"first").await.unwrap()
    ));
    node.command(&["SCRIPT", "FLUSH"]).await.unwrap();
    assert!(is_written(
        &writer.set(&fence("a", 5), bytes, b"second").await.unwrap()
    ));

    node.freeze().await.unwrap();
    let error = hasty
        .set(&fence("a", 6), bytes, b"unknown")
        .await
        .unwrap_err();
    assert_eq!(error.kind(), BackendErrorKind::Timeout, "{error:?}");
    assert_eq!(error.executed(), Executed::Maybe);
    node.thaw().await.unwrap();

    // The connection may be a new one.
    let newer = eventually("a write after the thaw", SOON, async || {
        writer.set(&fence("a", 7), bytes, b"newer").await
    })
    .await;
    assert!(is_written(&newer));
    let again = writer.set(&fence("a", 6), bytes, b"unknown").await.unwrap();
    assert!(matches!(again, GuardedOutcome::Stale { newest, .. } if newest.get() == 7));
    assert_eq!(raw.say(&["GET", &key]).await.text(), "newer");
    assert_eq!(stored(&mut raw, &key).await[1], "7");

    client.close().await;
    let closed = writer.set(&fence("a", 8), bytes, b"v").await.unwrap_err();
    assert_eq!(closed.executed(), Executed::No, "{closed:?}");
    error.to_string()
}
