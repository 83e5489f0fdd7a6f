//! One name used as two kinds of lock, or for something else altogether.

use locktopus::{BackendErrorKind, Executed, LockError, LockRequest, Phase};
use locktopus_testkit::topology::Node;

use crate::At;
use crate::common::raw::{Raw, Value};
use crate::common::{chain, close, locks, unique};

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

/// At once, not after an outage, and with a word about what is wrong.
async fn refused(request: LockRequest) -> String {
    let errors = [
        request.clone().acquire().await.map(drop).unwrap_err(),
        request.clone().try_acquire().await.map(drop).unwrap_err(),
        request.inspect().await.map(drop).unwrap_err(),
    ];
    let mut text = String::new();
    for error in errors {
        let LockError::Backend { source, phase, .. } = &error else {
            panic!("{error:?}");
        };
        assert_eq!(source.kind(), BackendErrorKind::Refused, "{error:?}");
        assert_eq!(source.executed(), Executed::No, "{error:?}");
        text = chain(&error);
        assert!(text.contains("WRONGTYPE"), "{text}");
        assert!(
            text.contains("in use for something else") || *phase == Phase::Inspect,
            "{text}"
        );
    }
    text
}

/// Everything that an attempt could have written, except how long it still lives.
async fn picture(node: &Node, name: &str) -> [Value; 3] {
    let mut raw = Raw::to(node).await;
    let token = format!("redisson_lock_token:{{{name}}}");
    [
        raw.say(&["DUMP", name]).await,
        raw.say(&["DUMP", &token]).await,
        Value::Int(raw.say(&["PTTL", name]).await.int().signum()),
    ]
}
