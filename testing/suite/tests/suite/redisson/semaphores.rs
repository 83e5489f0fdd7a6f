//! `RSemaphore` and `RPermitExpirableSemaphore`, and ours.

use std::time::Duration;

use locktopus::{LockError, LockGuard, LockRequest};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::common::raw::{Raw, Value};
use crate::common::{HANDED, HANDED_LEASE, PATIENT, close, eventually};
use crate::redisson_topology::theirs::{LONG_LEASE, Theirs};
use crate::redisson_topology::{At, our_waiters, publish, subscribe};

const SHORT: Duration = Duration::from_millis(400);

fn waits(request: LockRequest) -> JoinHandle<Result<LockGuard, LockError>> {
    tokio::spawn(request.strategy(HANDED).fixed_lease(HANDED_LEASE).acquire())
}

async fn served(waiter: JoinHandle<Result<LockGuard, LockError>>) -> LockGuard {
    let served = timeout(PATIENT, waiter).await.expect("ours is served");
    served.unwrap().unwrap()
}

/// Both sides share one number of free permits, which either may set, and each is notified when the
/// other returns some.
pub(crate) async fn one_number(at: At) -> String {
    let locks = at.locks().await;
    let mut theirs = Theirs::new(&at, "semaphore");
    let name = theirs.name.clone();
    let ours = locks.semaphore(&*name);
    theirs.does("set", &["3"]).await;
    assert!(!ours.initialise(9).await.unwrap(), "set already");
    let two = ours.permits(2).acquire().await.unwrap();
    assert_eq!(theirs.number("available").await, 1);
    theirs.cannot("try", &["2"]).await;
    theirs.waits("acquire", &["2"]).await;
    two.release().await.unwrap();
    theirs.served().await;

    let waiter = waits(ours.permits(3));
    our_waiters(
        &at.place,
        &name,
        crate::redisson_topology::ours::Ours::Lock,
        1,
    )
    .await;
    theirs.does("release", &["1"]).await;
    assert!(!waiter.is_finished(), "two are not enough");
    theirs.does("release", &["1"]).await;
    let all = served(waiter).await;
    theirs.cannot("try", &["1"]).await;
    all.release().await.unwrap();
    assert_eq!(theirs.number("available").await, 3);
    close(locks).await;
    "3 permits".to_owned()
}

/// Permits of our dead holder come back when one of our clients requests some. A Java waiter hears
/// of them then, and not before.
pub(crate) async fn a_dead_holder_wakes_nobody(at: At) -> String {
    let locks = at.locks().await;
    let mut theirs = Theirs::new(&at, "semaphore");
    let name = theirs.name.clone();
    let ours = locks.semaphore(&*name);
    theirs.does("set", &["1"]).await;
    let lost = ours.permits(1).fixed_lease(SHORT).acquire().await.unwrap();
    theirs.waits("acquire", &["1"]).await;
    lost.lost().await;
    // By the server's clock, too.
    let mut raw = Raw::to(at.place.primary_for(&name).await.unwrap()).await;
    over(&mut raw, &format!("locktopus_holders:{{{name}}}")).await;
    assert_eq!(raw.say(&["GET", &name]).await.text(), "0");
    theirs.another().cannot("try", &["1"]).await;

    let channel = format!("redisson_sc:{{{name}}}");
    let mut ear = Raw::to(at.place.primary_for(&name).await.unwrap()).await;
    subscribe(&at.place, &mut ear, &channel).await;
    let available = ours.available().await.unwrap();
    theirs.still_waits().await;
    // The first message heard is the one published now; to Java it means that no permit came back.
    publish(&at.place, &mut raw, &channel, "0").await;
    assert_eq!(ear.hear().await.list()[2].text(), "0", "only looked at");
    theirs.still_waits().await;
    // More than exist.
    assert!(ours.permits(2).try_acquire().await.unwrap().is_none());
    assert_eq!(ear.hear().await.list()[2].text(), "1");
    theirs.served().await;
    let late = lost.release().await;
    assert!(matches!(late, Err(LockError::Lost { .. })), "{late:?}");
    assert_eq!(theirs.number("available").await, 0, "given back once");
    theirs.does("release", &["1"]).await;
    close(locks).await;
    format!("woken when we asked; free before: {available:?}")
}

/// Waits until all holders of a sorted set have ended, by the server's clock.
async fn over(raw: &mut Raw, holders: &str) {
    eventually("the end of the lease", PATIENT, async || {
        let now = raw.say(&["TIME"]).await;
        let now: i64 = now.list()[0].text().parse::<i64>().unwrap() * 1000
            + now.list()[1].text().parse::<i64>().unwrap() / 1000;
        let last = raw
            .say(&["ZREVRANGE", holders, "0", "0", "WITHSCORES"])
            .await;
        let Value::List(last) = last else {
            panic!("{last:?}");
        };
        let ends: f64 = last[1].text().parse().unwrap();
        #[expect(clippy::cast_possible_truncation, reason = "milliseconds")]
        let ends = ends as i64;
        if ends < now { Ok(()) } else { Err(ends - now) }
    })
    .await;
}

/// Permits with an id each: extended, returned once, and only by their holder.
pub(crate) async fn permits_with_ids(at: At) -> String {
    let locks = at.locks().await;
    let mut theirs = Theirs::new(&at, "permits");
    let name = theirs.name.clone();
    let ours = locks.permit_semaphore(&*name);
    theirs.does("set", &["1"]).await;
    assert!(!ours.initialise(9).await.unwrap(), "set already");

    let guard = ours.permits(1).acquire().await.unwrap();
    assert_eq!(theirs.number("available").await, 0);
    theirs.cannot("try", &["0"]).await;
    theirs.waits("acquire", &[LONG_LEASE]).await;
    guard.release().await.unwrap();
    let id = theirs.served().await;
    assert!(ours.permits(1).try_acquire().await.unwrap().is_none());
    assert_eq!(ours.inspect().await.unwrap().holders.len(), 1);

    let waiter = waits(ours.permits(1));
    our_waiters(
        &at.place,
        &name,
        crate::redisson_topology::ours::Ours::Lock,
        1,
    )
    .await;
    theirs.does("extend", &[&id, LONG_LEASE]).await;
    theirs.does("release", &[&id]).await;
    let guard = served(waiter).await;
    theirs.cannot("release", &[&id]).await;
    theirs.cannot("extend", &[&id, LONG_LEASE]).await;
    guard.ensure_valid().unwrap();
    guard.release().await.unwrap();
    assert_eq!(theirs.number("available").await, 1);
    close(locks).await;
    "once each".to_owned()
}

/// Each side gets the permit that the other side's holder did not return; Java polls after its end.
pub(crate) async fn permits_end(at: At) -> String {
    let locks = at.locks().await;
    let mut theirs = Theirs::new(&at, "permits");
    let ours = locks.permit_semaphore(&*theirs.name);
    theirs.does("set", &["1"]).await;
    let short = SHORT.as_millis().to_string();
    let id = theirs.does("acquire", &[&short]).await;
    let got = timeout(PATIENT, ours.permits(1).acquire()).await;
    let guard = got.expect("theirs has ended").unwrap();
    theirs.cannot("release", &[&id]).await;
    guard.ensure_valid().unwrap();
    guard.release().await.unwrap();

    let lost = ours.permits(1).fixed_lease(SHORT).acquire().await.unwrap();
    theirs.begins("acquire", &[LONG_LEASE]).await;
    let id = theirs.served().await;
    let late = lost.release().await;
    assert!(matches!(late, Err(LockError::Lost { .. })), "{late:?}");
    assert_eq!(theirs.number("available").await, 0, "theirs is kept");
    theirs.does("release", &[&id]).await;
    close(locks).await;
    "both came back".to_owned()
}
