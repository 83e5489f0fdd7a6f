//! One holder among both sides; a message wakes the next one.

use locktopus_servers::peers::redisson::Reply;
use tokio::time::{Instant, timeout};

use crate::common::{HANDED_LEASE, ONLY_MESSAGES, PATIENT, close, unique};
use crate::redisson_topology::theirs::{LONG_LEASE, gives_up};
use crate::redisson_topology::{At, ask, channel, listeners, waits_for_message};

/// A lock that Java holds blocks us, and its last unlock wakes us.
pub(crate) async fn java_holds(at: At) -> String {
    let name = unique("java-holds");
    let locks = at.locks().await;
    let mut java = at.java.thread();
    for _ in 0..2 {
        let locked = ask(&mut java, &["lock", "lock", &name, LONG_LEASE]).await;
        assert_eq!(locked, Reply::Done);
    }

    assert!(locks.lock(&name).try_acquire().await.unwrap().is_none());
    let state = locks.lock(&name).inspect().await.unwrap();
    let holder = state.holder().unwrap();
    let Reply::Value(owner) = ask(&mut java, &["self", "owner"]).await else {
        panic!("no owner");
    };
    assert_eq!((holder.owner.expose(), holder.holds), (owner.as_bytes(), 2));

    let request = locks.lock(&name).strategy(ONLY_MESSAGES);
    let waiter = tokio::spawn(async move { (request.acquire().await.unwrap(), Instant::now()) });
    listeners(&at.place, &name, &channel(&name), 1).await;
    assert_eq!(
        ask(&mut java, &["lock", "unlock", &name]).await,
        Reply::Done
    );
    assert!(locks.lock(&name).try_acquire().await.unwrap().is_none());
    assert!(!waiter.is_finished(), "Java still holds it once");

    let released = Instant::now();
    assert_eq!(
        ask(&mut java, &["lock", "unlock", &name]).await,
        Reply::Done
    );
    let (guard, woken) = timeout(PATIENT, waiter).await.unwrap().unwrap();

    assert_eq!(ask(&mut java, &["lock", "try", &name]).await, Reply::No);
    assert_eq!(
        ask(&mut java, &["lock", "is-locked", &name]).await,
        Reply::Done
    );
    let unlocked = ask(&mut java, &["lock", "unlock", &name]).await;
    assert!(
        matches!(&unlocked, Reply::Threw { class, .. } if class == "IllegalMonitorStateException"),
        "{unlocked:?}"
    );
    guard.ensure_valid().unwrap();
    guard.release().await.unwrap();
    assert_eq!(
        ask(&mut java, &["lock", "is-locked", &name]).await,
        Reply::No
    );
    close(locks).await;
    format!("woken {:.2?} after Java was told", woken - released)
}

/// A lock that we hold blocks Java, and our release wakes its waiters, one after another.
pub(crate) async fn we_hold(at: At) -> String {
    let name = unique("we-hold");
    let locks = at.locks().await;
    // Java sleeps until the lease ends, and that must not be what wakes it.
    let request = locks.lock(&name).fixed_lease(HANDED_LEASE);
    let guard = request.acquire().await.unwrap();
    let token = guard.token().unwrap();

    let (mut first, mut second) = (at.java.thread(), at.java.thread());
    gives_up(&mut first, &["lock", "try", &name, "50"]).await;
    let lock = ["lock", "lock", &name, LONG_LEASE];
    first.tell(&lock).await.unwrap();
    waits_for_message(&at.java, &first).await;
    guard.ensure_valid().unwrap();

    let released = Instant::now();
    guard.release().await.unwrap();
    let got = timeout(PATIENT, first.reply())
        .await
        .expect("told by a message");
    assert_eq!(got.unwrap(), Reply::Done);
    let took = released.elapsed();
    assert_eq!(
        ask(&mut first, &["lock", "is-mine", &name]).await,
        Reply::Done
    );
    assert!(locks.lock(&name).try_acquire().await.unwrap().is_none());

    second.tell(&lock).await.unwrap();
    waits_for_message(&at.java, &second).await;
    assert_eq!(
        ask(&mut first, &["lock", "unlock", &name]).await,
        Reply::Done
    );
    let got = timeout(PATIENT, second.reply())
        .await
        .expect("Java gave it back");
    assert_eq!(got.unwrap(), Reply::Done);
    assert_eq!(
        ask(&mut second, &["lock", "unlock", &name]).await,
        Reply::Done
    );

    let again = locks.lock(&name).acquire().await.unwrap();
    assert!(again.token().unwrap() > token);
    again.release().await.unwrap();
    close(locks).await;
    format!("Java woken {took:.2?} after our release")
}
