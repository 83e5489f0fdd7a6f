//! The server is out of memory and evicts nothing.

use std::time::Duration;

use locktopus::{BackendErrorKind, Executed, LockError};

use crate::At;
use crate::common::{SOON, close, eventually, locks, unique};

pub(crate) async fn of_data((place, client): At) -> String {
    let locks = locks(&place, client).await;
    let node = &place.nodes()[0];
    let lease = Duration::from_millis(900);
    let mut guards = Vec::new();
    for _ in 0..3 {
        guards.push(
            locks
                .lock(unique("full"))
                .watchdog(lease)
                .acquire()
                .await
                .unwrap(),
        );
        guards.push(
            locks
                .mutex(unique("full"))
                .watchdog(lease)
                .acquire()
                .await
                .unwrap(),
        );
    }
    let memory = |limit: &'static str| async move {
        node.command(&["CONFIG", "SET", "maxmemory", limit])
            .await
            .unwrap();
    };
    memory("1").await;

    let refused = locks.lock(unique("full")).acquire().await.unwrap_err();
    let LockError::Backend { source, .. } = &refused else {
        panic!("{refused:?}");
    };
    assert_eq!(source.kind(), BackendErrorKind::Refused, "{refused:?}");
    assert_eq!(source.executed(), Executed::No, "{refused:?}");
    assert!(source.to_string().contains("OOM"), "{source}");
    let said = source.to_string();

    // Renewal goes on, by the watchdog and by hand.
    for guard in &guards {
        let before = guard.valid_until();
        eventually("a renewal", SOON, async || {
            guard.ensure_valid().unwrap();
            (guard.valid_until() > before).then_some(()).ok_or(())
        })
        .await;
        guard.extend(SOON).await.unwrap();
    }
    for guard in guards {
        let name = guard.name().to_string();
        guard.release().await.unwrap();
        let left = node.command(&["EXISTS", &name]).await.unwrap();
        assert_eq!(left.text(), "0", "{name}");
    }
    memory("0").await;
    locks
        .lock(unique("full"))
        .acquire()
        .await
        .unwrap()
        .release()
        .await
        .unwrap();
    close(locks).await;
    said
}
