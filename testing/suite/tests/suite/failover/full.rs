//! The server is out of memory and evicts nothing.

use std::time::Duration;

use locktopus::{BackendErrorKind, Executed, LockError, MutexProfile};

use crate::common::{SOON, becomes, close, eventually, locks, unique};
use crate::failover::At;

pub(crate) async fn of_data((place, client): At) -> String {
    let locks = locks(&place, client).await;
    let node = &place.nodes()[0];
    let lease = Duration::from_millis(900);
    let mut guards = Vec::new();
    for _ in 0..3 {
        guards.push(
            locks
                .lock(unique("full"))
                .renewed_lease(lease)
                .acquire()
                .await
                .unwrap(),
        );
        guards.push(
            locks
                .mutex(unique("full"))
                .renewed_lease(lease)
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

    // The watchdog and manual calls still renew.
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
    let passing = locks.lock(unique("full")).acquire().await.unwrap();
    passing.release().await.unwrap();
    close(locks).await;
    said
}

/// Read-only calls still work: an operator must see what is stored before freeing memory.
pub(crate) async fn can_be_read((place, client): At) -> String {
    let locks = locks(&place, client).await;
    let node = &place.nodes()[0];
    let [name, counted, latched] = [(); 3].map(|()| unique("read"));
    let (semaphore, permits) = (
        locks.semaphore(&counted),
        locks.permit_semaphore(format!("{counted}-p")),
    );
    for semaphore in [&semaphore, &permits] {
        assert!(semaphore.initialise(3).await.unwrap());
    }
    let latch = locks.latch(&latched);
    assert!(latch.initialise(2).await.unwrap());
    let rw = locks.rw_lock(format!("{name}-rw"));
    let requests = [
        locks.lock(format!("{name}-l")),
        locks.mutex(format!("{name}-m")),
        locks.mutex_as(format!("{name}-s"), MutexProfile::single_key()),
        locks.fair_lock(format!("{name}-f")),
        rw.read(),
        semaphore.permits(2),
        permits.permits(2),
    ];
    let mut guards = Vec::new();
    for request in &requests {
        guards.push(request.clone().acquire().await.unwrap());
    }
    // Permits with an expired lease that no client has taken back.
    for semaphore in [&semaphore, &permits] {
        let short = Duration::from_millis(20);
        let lost = semaphore
            .permits(1)
            .fixed_lease(short)
            .acquire()
            .await
            .unwrap();
        lost.lost().await;
    }
    let memory = |limit: &'static str| async move {
        node.command(&["CONFIG", "SET", "maxmemory", limit])
            .await
            .unwrap();
    };
    memory("1").await;
    for request in &requests {
        let state = request.clone().inspect().await.unwrap();
        assert!(state.holder().is_some(), "{request:?}");
    }
    for semaphore in [&semaphore, &permits] {
        let what = "permits whose lease is over";
        becomes(what, SOON, Some(1), async || {
            semaphore.available().await.unwrap()
        })
        .await;
        assert!(!semaphore.inspect().await.unwrap().holders.is_empty());
    }
    assert_eq!(latch.count().await.unwrap(), 2);
    let waited = latch.wait().at_most(Duration::from_millis(50)).await;
    assert!(
        matches!(waited, Err(LockError::WaitTimeout { .. })),
        "{waited:?}"
    );
    let page = locks.list(&name).unwrap().next_page().await.unwrap();
    assert!(page.is_some_and(|page| !page.is_empty()));
    let refused = semaphore.add(1).await.unwrap_err();
    assert!(
        refused.to_string().contains("nothing was changed"),
        "{refused}"
    );
    for guard in guards {
        guard.release().await.unwrap();
    }
    memory("0").await;
    close(locks).await;
    "everything was read".to_owned()
}
