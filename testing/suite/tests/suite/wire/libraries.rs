//! Every library with a ready-made profile, simulated by the commands that it sends.

use std::time::Duration;

use locktopus::{LockError, Locktopus, MutexProfile};
use locktopus_servers::topology::TopologyKind;

use crate::common::raw::Raw;
use crate::common::{close, locks, unique};
use crate::wire::At;
use crate::wire::peers::{Library, libraries};

pub(crate) async fn all((place, client): At) -> String {
    let locks = locks(&place, client).await;
    let mut tried = 0;
    for library in libraries() {
        let name = unique("shared");
        let key = library.key.replace("{}", &name);
        let mut raw = Raw::to(place.primary_for(&key).await.unwrap()).await;
        they_hold(&library, &locks, &mut raw, &name, &key).await;
        we_hold(&library, &locks, &mut raw, &name, &key).await;
        tried += 1;
    }
    close(locks).await;
    format!("{tried} libraries")
}

async fn they_hold(library: &Library, locks: &Locktopus, raw: &mut Raw, name: &str, key: &str) {
    let what = library.name;
    let request = || locks.mutex_as(name, library.profile.clone());
    assert!(library.acquire(raw, key).await, "{what}");
    assert!(request().try_acquire().await.unwrap().is_none(), "{what}");
    let state = request().inspect().await.unwrap();
    assert_eq!(
        state.holder().unwrap().owner.expose(),
        library.value,
        "{what}"
    );
    assert!(library.extend(raw, key).await, "{what} extends its own");
    let short = request().wait_at_most(Duration::from_millis(30));
    let waited = short.acquire().await;
    assert!(
        matches!(waited, Err(LockError::WaitTimeout { .. })),
        "{what}: {waited:?}"
    );
    // Ours waits, and gets it when theirs is released.
    let waiter = tokio::spawn(request().acquire());
    tokio::task::yield_now().await;
    assert!(
        library.eval(raw, library.release, key, library.value).await,
        "{what}"
    );
    let guard = waiter.await.unwrap().unwrap();
    guard.release().await.unwrap();
    assert_eq!(raw.say(&["EXISTS", key]).await.int(), 0, "{what}");
}

async fn we_hold(library: &Library, locks: &Locktopus, raw: &mut Raw, name: &str, key: &str) {
    let what = library.name;
    let request = || {
        let request = locks.mutex_as(name, library.profile.clone());
        request.fixed_lease(Duration::from_millis(9_500))
    };
    let guard = request().acquire().await.unwrap();
    let ours = guard.owner_id().expose().to_vec();
    assert_eq!(raw.say(&["GET", key]).await.bytes(), ours, "{what}");
    assert!(
        (library.form)(&ours),
        "{what}: {}",
        String::from_utf8_lossy(&ours)
    );
    let left = raw.say(&["PTTL", key]).await.int();
    assert!((5_000..=10_000).contains(&left), "{what}: {left} ms");
    let token = format!("redisson_lock_token:{{{key}}}");
    let side_keys = raw.say(&["EXISTS", &token]).await.int() == 1;
    assert_eq!(side_keys, library.profile.has_side_keys(), "{what}");
    assert!(!library.acquire(raw, key).await, "{what}");
    assert!(!library.extend(raw, key).await, "{what}");
    assert!(
        !library.eval(raw, library.release, key, library.value).await,
        "{what}"
    );
    guard.extend(Duration::from_secs(20)).await.unwrap();
    assert!(raw.say(&["PTTL", key]).await.int() > 15_000, "{what}");
    guard.release().await.unwrap();
    assert!(library.acquire(raw, key).await, "{what}: free for them");
    raw.say(&["DEL", key]).await;

    // Ours was taken away: the release must return an error and not delete theirs.
    let guard = request().acquire().await.unwrap();
    raw.say(&["DEL", key]).await;
    assert!(library.acquire(raw, key).await, "{what}");
    let released = guard.release().await;
    assert!(
        matches!(released, Err(LockError::Lost { .. })),
        "{what}: {released:?}"
    );
    assert_eq!(
        raw.say(&["GET", key]).await.bytes(),
        library.value,
        "{what}"
    );
    raw.say(&["DEL", key]).await;

    // Given our value, they can release for us.
    let guard = request().acquire().await.unwrap();
    let given = guard.owner_id().expose().to_vec();
    assert!(
        library.eval(raw, library.release, key, &given).await,
        "{what}"
    );
    let released = guard.release().await;
    assert!(
        matches!(released, Err(LockError::Lost { .. })),
        "{what}: {released:?}"
    );
}

/// ShedLock without `safeUpdate` deletes the key unconditionally: we notice at the next renewal.
pub(crate) async fn bare_delete((place, client): At) -> String {
    let locks = locks(&place, client).await;
    let name = unique("job");
    let key = format!("job-lock:default:{name}");
    let mut raw = Raw::to(place.primary_for(&key).await.unwrap()).await;
    let profile = MutexProfile::shedlock("default").unwrap();
    let request = locks.mutex_as(&name, profile);
    let request = request.renewed_lease(Duration::from_millis(600));
    let guard = request.acquire().await.unwrap();
    raw.say(&["DEL", &key]).await;
    let cause = tokio::time::timeout(crate::common::SOON, guard.lost())
        .await
        .unwrap();
    assert_eq!(cause, locktopus::LostCause::Missing);
    assert!(guard.release().await.is_err());
    close(locks).await;
    let cluster = matches!(place.kind(), TopologyKind::Cluster { .. });
    format!("noticed{}", if cluster { ", in a cluster" } else { "" })
}
