//! Errors, and what is left, when something is wrong.

use std::time::Duration;

use locktopus::{BackendErrorKind, Executed, GuardedOutcome};

use crate::common::{SOON, eventually, unique};
use crate::guarded::{At, fence, is_written, raw, stored, writer};

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
