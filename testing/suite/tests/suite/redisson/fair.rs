//! `RFairLock` and `fair_lock`: one queue.

use std::time::Duration;

use locktopus::Locktopus;
use locktopus_servers::topology::Deployment;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::common::raw::Raw;
use crate::common::{HANDED, HANDED_LEASE, PATIENT, becomes, close, connect, eventually, url_for};
use crate::redisson_topology::ours::Ours;
use crate::redisson_topology::theirs::{LONG_LEASE, Theirs};
use crate::redisson_topology::{At, our_waiters};

/// Waiters of theirs, ours, and theirs again wait for our lock; each gets it in turn from the one
/// before.
pub(crate) async fn in_order(at: At) -> String {
    let locks = at.locks().await;
    let mut first = Theirs::new(&at, "fair");
    let name = first.name.clone();
    let mut last = first.another();
    let held = Ours::Fair.take(&locks, &name, HANDED_LEASE, HANDED).await;
    first.waits("lock", &[LONG_LEASE]).await;
    let second = Ours::Fair.waits(&locks, &name, HANDED);
    our_waiters(&at.place, &name, Ours::Fair, 2).await;
    last.waits("lock", &[LONG_LEASE]).await;
    queued(&at.place, &name, 3).await;

    held.release().await.unwrap();
    first.served().await;
    assert!(!second.is_finished(), "overtaken by ours");
    last.still_waits().await;
    first.does("unlock", &[]).await;
    let held = timeout(PATIENT, second)
        .await
        .expect("ours is second")
        .unwrap();
    last.still_waits().await;
    first.cannot("try", &[]).await;
    held.release().await.unwrap();
    last.served().await;
    last.does("unlock", &[]).await;
    queued(&at.place, &name, 0).await;
    close(locks).await;
    "theirs, ours, theirs".to_owned()
}

/// The first waiter is ours and dies. Java's clients behind it wait for its deadline although the
/// lock is free, until one of ours polls.
pub(crate) async fn killed_head(at: At) -> String {
    let locks = at.locks().await;
    let mut holder = Theirs::new(&at, "fair");
    let name = holder.name.clone();
    let mut waiter = holder.another();
    holder.does("lock", &[LONG_LEASE]).await;
    let head = Doomed::waits(url_for(&at.place, at.client), name.clone());
    our_waiters(&at.place, &name, Ours::Fair, 1).await;
    waiter.waits("lock", &[LONG_LEASE]).await;
    queued(&at.place, &name, 2).await;
    head.dies();

    holder.does("unlock", &[]).await;
    let mut raw = Raw::to(at.place.primary_for(&name).await.unwrap()).await;
    assert_eq!(raw.say(&["EXISTS", &name]).await.int(), 0, "free");
    waiter.still_waits().await;
    waiter.another().cannot("try", &[]).await;
    let deadline = deadline_of_head(&mut raw, &name).await;
    assert!(
        deadline > Duration::from_secs(200),
        "{deadline:?} are left to the dead one"
    );

    passes(&locks, &name).await;
    waiter.served().await;
    waiter.does("unlock", &[]).await;
    close(locks).await;
    format!("{deadline:.0?} were left to the dead one")
}

/// One of ours polls until a waiter is served.
async fn passes(locks: &Locktopus, name: &str) {
    eventually("somebody has it", PATIENT, async || {
        match Ours::Fair.try_take(locks, name).await {
            Some(held) => {
                held.release().await.unwrap();
                Err("nobody was first")
            }
            None => {
                let state = locks.fair_lock(name).inspect().await.unwrap();
                state.holder().map(|_| ()).ok_or("free")
            }
        }
    })
    .await;
}

async fn deadline_of_head(raw: &mut Raw, name: &str) -> Duration {
    let queue = format!("redisson_lock_queue:{{{name}}}");
    let head = raw.say(&["LINDEX", &queue, "0"]).await.text();
    let deadlines = format!("redisson_lock_timeout:{{{name}}}");
    let deadline = raw.say(&["ZSCORE", &deadlines, &head]).await.text();
    let since = Duration::from_millis(deadline.parse().unwrap());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.saturating_sub(now.unwrap())
}

/// Waits until the list has this many waiters.
pub(crate) async fn queued(place: &Deployment, name: &str, length: i64) {
    let mut raw = Raw::to(place.primary_for(name).await.unwrap()).await;
    let queue = format!("redisson_lock_queue:{{{name}}}");
    let seen = async || raw.say(&["LLEN", &queue]).await.int();
    becomes("waiters in the list", PATIENT, length, seen).await;
}

/// A waiter of ours with its own runtime, which ends without notice to the servers.
struct Doomed {
    die: oneshot::Sender<()>,
    thread: std::thread::JoinHandle<()>,
}

impl Doomed {
    fn waits(url: String, name: String) -> Self {
        let (die, dies) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let locks = connect(&url).await;
                let request = locks.fair_lock(name).strategy(HANDED);
                tokio::select! {
                    _ = request.fixed_lease(HANDED_LEASE).acquire() => panic!("served too early"),
                    ordered = dies => ordered.unwrap(),
                }
            });
            // No task is left that could clean up.
            runtime.shutdown_background();
        });
        Self { die, thread }
    }

    fn dies(self) {
        self.die.send(()).unwrap();
        self.thread.join().unwrap();
    }
}
