//! `RCountDownLatch` and `latch`.

use std::time::Duration;

use locktopus::Latch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::common::{PATIENT, close};
use crate::redisson_topology::theirs::Theirs;
use crate::redisson_topology::{At, listeners};

/// A waiter that only a message can wake in time.
fn opened(latch: &Latch) -> JoinHandle<()> {
    let wait = latch.wait().heartbeat(Duration::from_secs(90));
    tokio::spawn(async move { wait.await.unwrap() })
}

/// Both sides count, and both hear of the end.
pub(crate) async fn both_count(at: At) -> String {
    let locks = at.locks().await;
    let mut theirs = Theirs::new(&at, "latch");
    let mut waiter = theirs.another();
    let name = theirs.name.clone();
    let channel = format!("redisson_countdownlatch__channel__{{{name}}}");
    let ours = locks.latch(&*name);
    for they_set in [true, false] {
        if they_set {
            theirs.does("set", &["2"]).await;
            assert!(!ours.initialise(9).await.unwrap(), "closed already");
        } else {
            assert!(ours.initialise(2).await.unwrap());
            theirs.cannot("set", &["9"]).await;
        }
        let waits = opened(&ours);
        waiter.begins("await", &[]).await;
        listeners(&at.place, &name, &channel, 2).await;
        theirs.gives_up("await", &["10"]).await;
        // First we count last, and then they do.
        if they_set {
            theirs.does("count-down", &[]).await;
            assert_eq!(ours.count().await.unwrap(), 1);
            assert!(!waits.is_finished());
            assert_eq!(ours.count_down().await.unwrap(), 0);
        } else {
            assert_eq!(ours.count_down().await.unwrap(), 1);
            assert_eq!(theirs.number("count").await, 1);
            assert!(!waits.is_finished());
            theirs.does("count-down", &[]).await;
        }
        timeout(PATIENT, waits).await.expect("opened").unwrap();
        waiter.served().await;
        assert_eq!(theirs.number("count").await, 0);
    }
    // Deleting opens it too.
    assert!(ours.initialise(1).await.unwrap());
    let waits = opened(&ours);
    waiter.begins("await", &[]).await;
    listeners(&at.place, &name, &channel, 2).await;
    assert!(ours.delete().await.unwrap());
    timeout(PATIENT, waits).await.expect("opened").unwrap();
    waiter.served().await;
    close(locks).await;
    "opened twice".to_owned()
}
