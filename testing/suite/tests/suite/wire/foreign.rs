//! Another client that speaks Redisson's protocol takes locks away.

use std::time::Duration;

use locktopus::{LockError, LostCause};
use tokio::time::Instant;

use crate::common::raw::Raw;
use crate::common::{SOON, close, locks, unique};
use crate::wire::At;

/// A Java client's thread: uuid version 4.
const JAVA: &str = "71b96ce8-2746-4c1a-9b6e-0d2c1f0a9d11:53";

/// Another client deletes our lock and acquires it: we notice, and do not delete theirs.
pub(crate) async fn thief((place, client): At) -> String {
    let name = unique("thief");
    let locks = locks(&place, client).await;
    let mut raw = Raw::to(place.primary_for(&name).await.unwrap()).await;

    let request = locks.lock(&name).renewed_lease(Duration::from_millis(900));
    let guard = request.acquire().await.unwrap();
    let token = guard.token().unwrap();
    let begun = Instant::now();
    raw.say(&["DEL", &name]).await;
    raw.say(&["HSET", &name, JAVA, "1"]).await;
    let cause = tokio::time::timeout(SOON, guard.lost()).await.unwrap();
    assert_eq!(cause, LostCause::TakenOver);
    let noticed = begun.elapsed();
    let released = guard.release().await;
    assert!(
        matches!(
            &released,
            Err(LockError::Lost {
                cause: LostCause::TakenOver,
                ..
            })
        ),
        "{released:?}"
    );
    assert_eq!(raw.say(&["HGET", &name, JAVA]).await.text(), "1");

    raw.say(&["DEL", &name]).await;
    let next = locks.lock(&name).acquire().await.unwrap();
    assert!(next.token().unwrap() > token);
    next.release().await.unwrap();
    close(locks).await;
    format!("noticed after {noticed:.2?}")
}
