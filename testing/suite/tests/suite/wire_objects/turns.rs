//! Our clients hand a lock to each other, and clients that cannot queue still get their turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use locktopus::Locktopus;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::common::{LONG, close, unique};
use crate::wire_objects::At;
use crate::wire_objects::ear::Ear;
use crate::wire_objects::java::Java;

const CONTENDERS: usize = 4;
/// Enough hand-offs that at least one leaves the lock open, except with probability (15/16)^400.
const HAND_OFFS: u64 = 400;

/// The contended object.
#[derive(Debug, Clone, Copy)]
enum Object {
    Lock,
    Write,
    Semaphore,
    Permits,
}

impl Object {
    fn channel(self, java: &Java) -> String {
        match self {
            Self::Lock => java.channel(),
            Self::Write => java.side("redisson_rwlock"),
            Self::Semaphore | Self::Permits => java.side("redisson_sc"),
        }
    }

    /// Acquires it, counts, releases it.
    async fn visit(self, locks: &Locktopus, name: &str, served: &AtomicU64) {
        let count = || served.fetch_add(1, Ordering::Relaxed);
        let request = match self {
            Self::Lock => locks.lock(name),
            Self::Semaphore => locks.semaphore(name).permits(1),
            Self::Permits => locks.permit_semaphore(name).permits(1),
            Self::Write => {
                let guard = locks.rw_lock(name).write().acquire().await.unwrap();
                count();
                return guard.release().await.unwrap();
            }
        };
        let guard = request.acquire().await.unwrap();
        count();
        guard.release().await.unwrap();
    }

    async fn taken_by(self, java: &mut Java) -> bool {
        match self {
            Self::Lock => java.lock(30_000).await.is_none(),
            Self::Write => java.write_lock(30_000).await.is_none(),
            Self::Semaphore => java.take_permits(1).await,
            Self::Permits => java.take_permit([1; 16], 30_000).await.is_ok(),
        }
    }

    async fn left_by(self, java: &mut Java) {
        match self {
            Self::Lock => assert_eq!(java.unlock().await, Some(1)),
            Self::Write => assert_eq!(java.write_unlock().await, Some(1)),
            Self::Semaphore => assert_eq!(java.give_permits(1).await, 1),
            Self::Permits => assert!(java.give_permit([1; 16]).await),
        }
    }
}

struct Crowd {
    clients: Vec<Locktopus>,
    tasks: JoinSet<()>,
    served: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
}

impl Crowd {
    /// Clients that all want it all the time.
    async fn on(at: &At, object: Object, name: &str) -> Self {
        let mut crowd = Self {
            clients: Vec::new(),
            tasks: JoinSet::new(),
            served: Arc::default(),
            ended: Arc::default(),
        };
        for _ in 0..CONTENDERS {
            let locks = at.locks_apart().await;
            crowd.clients.push(locks.clone());
            let (name, served) = (name.to_owned(), Arc::clone(&crowd.served));
            let ended = Arc::clone(&crowd.ended);
            crowd.tasks.spawn(async move {
                while !ended.load(Ordering::Relaxed) {
                    object.visit(&locks, &name, &served).await;
                }
            });
        }
        crowd
    }

    fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }

    /// Returns once this many more were served.
    async fn serve(&self, more: u64) {
        let until = self.served() + more;
        let serving = async {
            while self.served() < until {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        timeout(LONG, serving).await.expect("the crowd goes on");
    }

    async fn end(mut self) {
        self.ended.store(true, Ordering::Relaxed);
        while let Some(done) = self.tasks.join_next().await {
            done.unwrap();
        }
        for locks in self.clients {
            close(locks).await;
        }
    }
}

/// One that tries after each notification, as Redisson's waiters do, among a crowd of our own.
pub(crate) async fn others_get_theirs(at: At) -> String {
    let mut seen = String::new();
    for object in [
        Object::Lock,
        Object::Write,
        Object::Semaphore,
        Object::Permits,
    ] {
        let slowest = served_in_turn(&at, object).await;
        seen.push_str(&format!("{object:?} {slowest:.0?} "));
    }
    seen
}

/// The longest wait of theirs.
async fn served_in_turn(at: &At, object: Object) -> Duration {
    let name = unique("turn");
    let mut java = Java::on(at, &name, 1).await;
    if matches!(object, Object::Semaphore | Object::Permits) {
        assert!(java.set_permits(1).await);
    }
    let mut ear = Ear::to(at, &name, &[object.channel(&java)]).await;
    let crowd = Crowd::on(at, object, &name).await;
    crowd.serve(20).await;
    let (mut waited, mut resumed) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..3 {
        let begun = Instant::now();
        let turn = async {
            while !object.taken_by(&mut java).await {
                let (_, word) = ear.next().await;
                assert!(word == "0" || word == "1", "{word}");
            }
        };
        timeout(LONG, turn).await.expect("theirs is granted too");
        waited = waited.max(begun.elapsed());
        let begun = Instant::now();
        object.left_by(&mut java).await;
        crowd.serve(1).await;
        resumed = resumed.max(begun.elapsed());
    }
    crowd.end().await;
    // The heartbeat is a second.
    let limit = Duration::from_millis(900);
    assert!(resumed < limit, "{object:?}: ours after {resumed:?}");
    waited
}

/// Without other listeners, every release hands the lock on.
pub(crate) async fn none_without_others(at: At) -> String {
    let name = unique("turn");
    let mut java = Java::on(&at, &name, 1).await;
    let crowd = Crowd::on(&at, Object::Lock, &name).await;
    crowd.serve(HAND_OFFS).await;
    let waiters = java.side("locktopus_waiters");
    let opened = java.raw().say(&["HEXISTS", &waiters, "!open"]).await.int();
    assert_eq!(
        opened == 1,
        at.is_uncounted(),
        "left open although nobody else listens"
    );
    let served = crowd.served();
    crowd.end().await;
    format!("{served} hand-offs")
}
