//! Names whose braces spoil the hash tag.

use locktopus::{LockError, NameError};
use locktopus_servers::topology::TopologyKind;

use crate::common::{close, locks, unique};
use crate::wire::At;

pub(crate) async fn odd((place, client): At) -> String {
    let locks = locks(&place, client).await;
    let is_cluster = matches!(place.kind(), TopologyKind::Cluster { .. });
    let mark = unique("odd");
    for odd in ["a{b", "x{}y", "a}b"] {
        let name = format!("{mark}{odd}");
        for request in [locks.lock(&name), locks.mutex(&name)] {
            let outcome = request.try_acquire().await;
            if !is_cluster {
                outcome.unwrap().unwrap().release().await.unwrap();
                continue;
            }
            let error = outcome.unwrap_err();
            assert!(
                matches!(&error, LockError::Name(NameError::Refused { name: named, .. }) if *named == name),
                "{error:?}"
            );
            assert!(error.to_string().contains(&format!("{name:?}")), "{error}");
        }
    }
    for good in ["plain", "a{b}c", "{t}:x"] {
        let name = format!("{good}{mark}");
        for request in [locks.lock(&name), locks.mutex(&name)] {
            let guard = request.try_acquire().await.unwrap().unwrap();
            guard.release().await.unwrap();
        }
    }
    let mut written = 0;
    for node in place.nodes() {
        let keys = node.command(&["KEYS", "*"]).await.unwrap();
        let ours = |key: &&_| {
            let key = locktopus_servers::topology::Resp::text(key);
            key.contains(&format!("{mark}a")) || key.contains(&format!("{mark}x"))
        };
        written += keys.items().iter().filter(ours).count();
    }
    close(locks).await;
    if is_cluster {
        assert_eq!(written, 0, "written in spite of the refusal");
        return "refused before anything was written".to_owned();
    }
    format!("accepted; {written} token keys")
}
