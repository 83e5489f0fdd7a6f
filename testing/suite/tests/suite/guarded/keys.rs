//! Which keys can be written, and how long they and their fences stay.

use std::time::Duration;

use locktopus::{BackendErrorKind, Executed};
use locktopus_servers::topology::TopologyKind;

use crate::common::raw::{Raw, Value};
use crate::common::unique;
use crate::guarded::{At, fence, is_written, raw, writer};

pub(crate) async fn lifetimes(at: At) -> String {
    let key = unique("data");
    let fence_key = format!("locktopus_fence:{{{key}}}");
    let (client, writer) = writer(&at).await;
    let raw = &mut raw(&at.0, &key).await;
    let days = |days: u64| Duration::from_secs(days * 24 * 60 * 60);
    let fence = fence("lives", 5);
    let (bytes, hour) = (key.as_bytes(), Duration::from_secs(60 * 60));

    assert!(is_written(
        &writer
            .set_expiring(&fence, bytes, b"v", hour)
            .await
            .unwrap()
    ));
    lives(raw, &key, hour).await;
    lives(raw, &fence_key, days(7)).await;
    assert!(is_written(
        &writer
            .set_expiring(&fence, bytes, b"v", days(30))
            .await
            .unwrap()
    ));
    lives(raw, &fence_key, days(30)).await;
    assert!(is_written(&writer.set(&fence, bytes, b"v").await.unwrap()));
    assert_eq!(raw.say(&["PTTL", &key]).await, Value::Int(-1));
    // A writer with a shorter setting shortens neither this lifetime nor that of a fence kept
    // forever.
    let hasty = writer.clone().keep_fences(Some(Duration::from_secs(1)));
    assert!(is_written(&hasty.set(&fence, bytes, b"v").await.unwrap()));
    lives(raw, &fence_key, days(30)).await;
    let patient = writer.clone().keep_fences(None);
    assert!(is_written(
        &patient
            .set_expiring(&fence, bytes, b"v", Duration::MAX)
            .await
            .unwrap()
    ));
    assert_eq!(raw.say(&["PTTL", &fence_key]).await, Value::Int(-1));
    assert!(is_written(&hasty.delete(&fence, bytes).await.unwrap()));
    assert_eq!(raw.say(&["PTTL", &fence_key]).await, Value::Int(-1));
    client.close().await;
    "as asked for".to_owned()
}

async fn lives(raw: &mut Raw, key: &str, expected: Duration) {
    let left = raw.say(&["PTTL", key]).await.int();
    let most = i64::try_from(expected.as_millis()).unwrap();
    assert!(
        (most - 60_000..=most).contains(&left),
        "{key}: {left} of {most} ms"
    );
}

pub(crate) async fn odd(at: At) -> String {
    let (client, writer) = writer(&at).await;
    let is_cluster = matches!(at.0.kind(), TopologyKind::Cluster { .. });
    let mark = unique("odd");
    let fence = fence("odd", 5);
    let key = |odd: &[u8]| [mark.as_bytes(), odd].concat();
    for good in [&b"\0\xff\r\n"[..], b"a{b}c", b"{b}}", b"*"] {
        assert!(
            is_written(&writer.set(&fence, &key(good), b"v").await.unwrap()),
            "{good:?}"
        );
    }
    for bad in [&b"a{b"[..], b"x{}y", b"a}b"] {
        let outcome = writer.set(&fence, &key(bad), b"v").await;
        if !is_cluster {
            assert!(is_written(&outcome.unwrap()), "{bad:?}");
            continue;
        }
        let error = outcome.unwrap_err();
        let found = (error.kind(), error.executed());
        assert_eq!(
            found,
            (BackendErrorKind::Refused, Executed::No),
            "{error:?}"
        );
        let text = error.to_string();
        let named = String::from_utf8(key(bad)).unwrap();
        assert!(text.contains(&named) && text.contains("hash tag"), "{text}");
    }
    client.close().await;
    let what = if is_cluster { "refused" } else { "written" };
    format!("odd braces are {what}")
}
