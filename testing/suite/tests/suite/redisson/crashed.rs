//! A Java process that is killed while it holds locks and permits and waits for others.

use std::sync::Arc;
use std::time::Duration;

use locktopus::{LockGuard, Locktopus, WaitStrategy};
use locktopus_servers::peers::redisson::{Jar, Redisson};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::common::{HANDED_LEASE, ONLY_MESSAGES, PATIENT, close, eventually, url};
use crate::redisson_topology::ours::{Held, Ours};
use crate::redisson_topology::theirs::{LONG_LEASE, Theirs};
use crate::redisson_topology::{At, channel, fair, listeners};

/// Java's watchdog lease.
const LEASE: Duration = Duration::from_secs(6);
/// How much clocks and rounding may shorten a lease.
const SLACK: Duration = Duration::from_millis(50);

/// A lock that Java's watchdog renews stays closed to us. After kill -9 its lease expires, and we
/// get the lock then and not before. Permits without holders never come back, and Java's place in a
/// fair queue blocks no one.
pub(crate) async fn everything(at: At, jar: Jar) -> String {
    let locks = at.locks().await;
    let watchdog = format!("renewed_lease={}s", LEASE.as_secs());
    let java = Redisson::start(&jar, &url(&at.place.url(), &watchdog)).await;
    let at = At {
        java: Arc::new(java.unwrap()),
        ..at
    };
    let mut holds = Theirs::new(&at, "lock");
    holds.does("lock", &[]).await;
    let renewed = renewed(&mut holds).await;
    let name = holds.name.clone();
    assert!(Ours::Lock.try_take(&locks, &name).await.is_none());
    let mut reads = Theirs::new(&at, "read");
    reads.does("lock", &[]).await;
    let left = Left::by(&at, &locks, reads.name.clone()).await;

    let request = locks.lock(&*name).strategy(ONLY_MESSAGES);
    let waiter = tokio::spawn(async move { (request.acquire().await.unwrap(), Instant::now()) });
    listeners(&at.place, &name, &channel(&name), 1).await;
    // Read before the answer, which may take a while.
    let asked = Instant::now();
    let remains = remaining(&mut holds).await;
    drop((holds, reads));
    let java = Arc::into_inner(at.java).expect("nobody else uses it");
    java.kill().await.unwrap();
    let (guard, woken) = timeout(LEASE + PATIENT, waiter).await.unwrap().unwrap();
    let took = woken - asked;
    assert!(
        took + SLACK > remains,
        "{took:?}, and {remains:?} were left"
    );
    guard.release().await.unwrap();
    let fair = left.inherited(&locks).await;
    close(locks).await;
    format!("renewed to {renewed:.1?}; {remains:.2?} were left, got it after {took:.2?}; {fair}")
}

/// The locks that the dead process leaves, and our requests for them.
struct Left {
    permits: String,
    expiring: JoinHandle<LockGuard>,
    read: String,
    fair: Held,
    behind: JoinHandle<Held>,
}

impl Left {
    async fn by(at: &At, locks: &Locktopus, read: String) -> Self {
        let mut semaphore = Theirs::new(at, "semaphore");
        semaphore.does("set", &["3"]).await;
        semaphore.does("acquire", &["2"]).await;

        let mut expiring = Theirs::new(at, "permits");
        expiring.does("set", &["1"]).await;
        let lease = LEASE.as_millis().to_string();
        expiring.does("acquire", &[&lease]).await;
        let request = locks.permit_semaphore(&*expiring.name).permits(1);

        let mut head = Theirs::new(at, "fair");
        let strategy = WaitStrategy::default();
        let fair = Ours::Fair
            .take(locks, &head.name, HANDED_LEASE, strategy)
            .await;
        head.waits("lock", &[LONG_LEASE]).await;
        let behind = Ours::Fair.waits(locks, &head.name, strategy);
        fair::queued(&at.place, &head.name, 2).await;
        Self {
            permits: semaphore.name,
            expiring: tokio::spawn(async move { request.acquire().await.unwrap() }),
            read,
            fair,
            behind,
        }
    }

    async fn inherited(self, locks: &Locktopus) -> String {
        let begun = Instant::now();
        self.fair.release().await.unwrap();
        let behind = timeout(PATIENT, self.behind).await;
        let behind = behind.expect("the dead one is passed over").unwrap();
        let took = begun.elapsed();
        behind.release().await.unwrap();

        let permit = timeout(LEASE + PATIENT, self.expiring).await;
        permit
            .expect("it has ended")
            .unwrap()
            .release()
            .await
            .unwrap();
        let writer = locks.rw_lock(&*self.read).write().acquire();
        let writer = timeout(LEASE + PATIENT, writer).await;
        let writer = writer.expect("the reader's lease has ended").unwrap();
        writer.release().await.unwrap();
        // All of its leases have ended.
        let semaphore = locks.semaphore(&*self.permits);
        assert_eq!(semaphore.available().await.unwrap(), Some(1));
        assert!(semaphore.permits(2).try_acquire().await.unwrap().is_none());
        format!("its place in the queue was passed over after {took:.2?}")
    }
}

async fn renewed(holder: &mut Theirs) -> Duration {
    let mut least = LEASE;
    eventually("a renewal by Java", LEASE + PATIENT, async || {
        let left = remaining(holder).await;
        if left > least {
            return Ok(left);
        }
        least = left;
        Err(left)
    })
    .await
}

async fn remaining(holder: &mut Theirs) -> Duration {
    let left = u64::try_from(holder.number("remaining").await);
    Duration::from_millis(left.expect("Java holds it"))
}
