//! Every operation on locks that a user may want, by the part of the rights that it needs.

use std::pin::Pin;
use std::time::Duration;

use locktopus::{
    AcquireAttempt, AnyGuard, AttemptOutcome, Fence, GuardedOutcome, GuardedWriter, LockError,
    LockGuard, LockKind, LockName, LockRequest, LockTarget, Locktopus, LostCause, MutexProfile,
    NameError, RateLimiter, RwLock, Semaphore, WaitStrategy, WriteGuard,
};
use tokio::time::{Instant, sleep};

use crate::common::{HANDED, HANDED_LEASE, SOON, unique};

/// The first refusal of any operation.
pub(crate) type Done = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Runs the operations that need this part of the rights. `url` is for guarded writes.
pub(crate) async fn of(what: &str, locks: &Locktopus, url: &str) -> Done {
    match what {
        "locks" => tokio::try_join!(
            join(both_names(|name| one_at_a_time(locks.lock(name), true))),
            several(locks),
            join(both_names(|name| passed_by(locks, name, url))),
        )
        .map(drop),
        "mutexes" => {
            let single = locks.mutex_as(unique("single"), MutexProfile::single_key());
            tokio::try_join!(
                join(both_names(|name| one_at_a_time(locks.mutex(name), true))),
                one_at_a_time(single, false),
            )
            .map(drop)
        }
        "fair locks" => {
            join(both_names(|name| async move {
                let request = locks.fair_lock(&name);
                kept(&request).await?;
                cut_off(&request, &name, url).await?;
                one_at_a_time(request, true).await
            }))
            .await
        }
        "read-write locks" => join(both_names(|name| shared(locks.rw_lock(name)))).await,
        "semaphores" => tokio::try_join!(
            join(both_names(|name| counted(locks.semaphore(name)))),
            join(both_names(|name| counted(locks.permit_semaphore(name)))),
            join(both_names(|name| rated(locks.rate_limiter(name)))),
        )
        .map(drop),
        "latches" => join(both_names(|name| latch(locks, name))).await,
        "lists of locks" => join(both_names(|name| listed(locks, name))).await,
        "guarded writes" => join(both_names(|name| guarded(locks, name, url))).await,
        "labels" => labelled(locks, url).await,
        other => panic!("no operations for {other}"),
    }
}

/// An instance shows its label, and no longer after its end.
async fn labelled(locks: &Locktopus, url: &str) -> Done {
    let url = format!("{url}&checks=off");
    let worker = locktopus::connect_with(&url, |builder| builder.label("worker")).await?;
    let guard = worker.lock(unique("labelled")).acquire().await?;
    let owner = guard.owner_id().clone();
    while locks.who([&owner]).await?.of(&owner).is_none() {
        sleep(Duration::from_millis(5)).await;
    }
    guard.release().await?;
    let _ = worker.shutdown(SOON).await;
    match locks.who([&owner]).await?.of(&owner) {
        None => Ok(()),
        Some(_) => Err("the record stays after the shutdown".into()),
    }
}

/// A name that is put in braces, and one with its own braces.
fn both_names<F>(operation: impl Fn(String) -> F) -> [Pin<Box<F>>; 2] {
    // Boxed, because all of them together would overflow the stack.
    [unique("op"), format!("{{{}}}-braced", unique("op"))].map(|name| Box::pin(operation(name)))
}

async fn join<F: Future<Output = Done>>([a, b]: [Pin<Box<F>>; 2]) -> Done {
    tokio::try_join!(a, b).map(drop)
}

/// The common functions of both kinds of guards.
trait Back: AnyGuard {
    fn lock(&self) -> &LockGuard;
    async fn back(self) -> Result<(), LockError>;
}

impl Back for LockGuard {
    fn lock(&self) -> &LockGuard {
        self
    }

    async fn back(self) -> Result<(), LockError> {
        self.release().await
    }
}

impl Back for WriteGuard {
    fn lock(&self) -> &LockGuard {
        self
    }

    async fn back(self) -> Result<(), LockError> {
        self.release().await
    }
}

async fn one_at_a_time(request: LockRequest, queues: bool) -> Done {
    waited_for(&request, queues).await?;
    renewed(&request).await?;
    handed_over(&request).await?;
    forced(&request).await
}

/// Two wait, and only a hand-off can wake them.
async fn waited_for<G: Back>(request: &LockRequest<G>, queues: bool) -> Done {
    let guard = request.clone().acquire().await?;
    assert!(request.clone().try_acquire().await?.is_none());
    let waiter = || async {
        let request = request.clone().fixed_lease(HANDED_LEASE);
        let request = if queues {
            request.strategy(HANDED)
        } else {
            request
        };
        request.acquire().await?.back().await?;
        Done::Ok(())
    };
    let holder = async {
        if queues {
            until_waiting(request, 2).await?;
        }
        guard.back().await?;
        Done::Ok(())
    };
    tokio::try_join!(holder, waiter(), waiter()).map(drop)
}

/// A waiter dies in the queue: the release skips and removes it.
async fn passed_by(locks: &Locktopus, name: String, url: &str) -> Done {
    const LIFE: Duration = Duration::from_millis(5);
    let request = locks.lock(&name);
    let guard = request.clone().acquire().await?;
    let backend = locktopus::connect_backend(&format!("{url}&checks=off")).await?;
    let name = LockName::new(format!("app:{name}"))?;
    let (target, deadline) = (
        LockTarget::new(name, LockKind::Reentrant),
        Instant::now() + SOON,
    );
    let attempt = AcquireAttempt {
        place: Some(LIFE),
        ..AcquireAttempt::new(target.clone(), target.kind().new_owner(), SOON, deadline)
    };
    let queued = backend.attempt(&attempt).await;
    backend.close().await;
    assert!(matches!(queued?, AttemptOutcome::Queued { .. }));
    while !request.clone().inspect().await?.waiters.is_empty() {
        sleep(LIFE).await;
    }
    Ok(guard.back().await?)
}

/// A release sets a deaf waiter aside. When it tries again, it comes before a later waiter.
async fn cut_off(request: &LockRequest, name: &str, url: &str) -> Done {
    let guard = request.clone().acquire().await?;
    let backend = locktopus::connect_backend(&format!("{url}&checks=off")).await?;
    let target = LockTarget::new(LockName::new(format!("app:{name}"))?, LockKind::Fair);
    let (owner, deadline) = (target.kind().new_owner(), Instant::now() + SOON);
    let attempt = AcquireAttempt {
        place: Some(SOON),
        ..AcquireAttempt::new(target, owner, SOON, deadline)
    };
    assert!(matches!(
        backend.attempt(&attempt).await?,
        AttemptOutcome::Queued { .. }
    ));
    let later = || async {
        let request = request.clone().strategy(HANDED);
        let held = request.clone().fixed_lease(HANDED_LEASE).acquire().await?;
        if request.inspect().await?.waiters.len() == 2 {
            let queued = backend.attempt(&attempt).await?;
            assert!(matches!(queued, AttemptOutcome::Queued { ahead: 0, .. }));
        }
        Done::Ok(held.back().await?)
    };
    let holder = async {
        until_waiting(request, 3).await?;
        Done::Ok(guard.back().await?)
    };
    let done = tokio::try_join!(holder, later(), later()).map(drop);
    backend.close().await;
    done
}

/// A waiter keeps its place by repeating its attempt.
async fn kept(request: &LockRequest) -> Done {
    let guard = request.clone().acquire().await?;
    let often = WaitStrategy::HandOff {
        heartbeat: Duration::from_millis(50),
        confirm: false,
    };
    let waiter = async {
        Done::Ok(
            request
                .clone()
                .strategy(often)
                .acquire()
                .await?
                .back()
                .await?,
        )
    };
    let holder = async {
        let mut left = None;
        loop {
            let state = request.clone().inspect().await?;
            let now = state.waiters.first().and_then(|waiter| waiter.remaining);
            if left.is_some() && now > left {
                break;
            }
            left = now;
            sleep(Duration::from_millis(5)).await;
        }
        Done::Ok(guard.back().await?)
    };
    tokio::try_join!(holder, waiter).map(drop)
}

async fn until_waiting<G: AnyGuard>(request: &LockRequest<G>, count: usize) -> Done {
    loop {
        let state = request.clone().inspect().await?;
        assert!(state.holder().is_some());
        if state.waiters.len() == count {
            return Ok(());
        }
        sleep(Duration::from_millis(5)).await;
    }
}

async fn renewed<G: Back>(request: &LockRequest<G>) -> Done {
    let mut lease = Duration::from_millis(300);
    loop {
        let guard = request.clone().renewed_lease(lease).acquire().await?;
        let until = guard.lock().valid_until();
        let lost = loop {
            if guard.lock().valid_until() > until {
                break None;
            }
            if let Err(lost) = guard.lock().ensure_valid() {
                break Some(lost);
            }
            sleep(Duration::from_millis(10)).await;
        };
        match lost {
            None => return Ok(guard.back().await?),
            // The machine may have stopped for that long.
            Some(_) if lease < SOON => lease *= 4,
            Some(lost) => return Err(lost.into()),
        }
    }
}

async fn handed_over(request: &LockRequest) -> Done {
    let guard = request.clone().acquire().await?;
    guard.extend(SOON * 10).await?;
    let ticket = guard.into_ticket().expect("a fresh lock");
    request.clone().adopt(&ticket).await?.release().await?;
    match request.clone().adopt(&ticket).await {
        Err(LockError::Lost {
            cause: LostCause::Missing,
            ..
        }) => Ok(()),
        Err(other) => Err(other.into()),
        Ok(guard) => panic!("adopted twice: {guard:?}"),
    }
}

async fn forced(request: &LockRequest) -> Done {
    let guard = request.clone().acquire().await?;
    let eviction = request.clone().force_release("a test").await?;
    // One id, or one for each permit.
    assert!(!eviction.evicted.is_empty());
    drop(guard);
    Ok(())
}

/// All or nothing, in one slot.
async fn several(locks: &Locktopus) -> Done {
    let name = unique("several");
    let names = ["a", "b"].map(|end| format!("{{{name}}}-{end}"));
    let guard = locks.multi(names).acquire().await?;
    Ok(guard.release().await?)
}

async fn shared(lock: RwLock) -> Done {
    waited_for(&lock.write(), true).await?;
    renewed(&lock.write()).await?;
    renewed(&lock.read()).await?;
    // Two readers with different leases, so that the lock's own expiry must be computed again.
    let long = lock.read().fixed_lease(SOON * 2).acquire().await?;
    let short = lock.read().fixed_lease(SOON).acquire().await?;
    long.release().await?;
    short.release().await?;
    let writer = lock.write().acquire().await?;
    let reader = writer.downgrade().await?;
    reader.release().await?;
    let guard = lock.read().acquire().await?;
    let eviction = lock.force_release("a test").await?;
    assert_eq!(eviction.evicted.len(), 1);
    drop(guard);
    Ok(())
}

async fn counted(semaphore: Semaphore) -> Done {
    assert!(semaphore.initialise(2).await?);
    let request = semaphore.permits(2);
    waited_for(&request, true).await?;
    renewed(&request).await?;
    forced(&request).await?;
    assert_eq!(semaphore.resize(3).await?, 3);
    assert_eq!(semaphore.add(1).await?, 4);
    assert_eq!(semaphore.drain().await?, 4);
    assert_eq!(semaphore.available().await?, Some(0));
    semaphore.inspect().await?;
    assert!(semaphore.delete().await?);
    Ok(())
}

async fn rated(limiter: RateLimiter) -> Done {
    assert!(limiter.initialise(2, SOON).await?);
    limiter.acquire_many(2).await?;
    assert_eq!(limiter.set_rate(3, SOON).await?, 1);
    Ok(())
}

async fn latch(locks: &Locktopus, name: String) -> Done {
    let latch = locks.latch(name);
    match latch.initialise(2).await {
        // Redisson adds braces to the name of a latch, so a cluster cannot store a name with
        // braces.
        Err(LockError::Name(NameError::Refused { .. })) => return Ok(()),
        new => assert!(new?),
    }
    assert_eq!(latch.count().await?, 2);
    let open = async {
        latch.count_down().await?;
        latch.count_down().await
    };
    let wait = latch.wait().at_most(SOON).into_future();
    tokio::try_join!(open, wait)?;
    latch.initialise(1).await?;
    assert!(latch.delete().await?);
    Ok(())
}

async fn listed(locks: &Locktopus, name: String) -> Done {
    let guards = [
        locks.lock(format!("{name}-l")).acquire().await?,
        locks.mutex(format!("{name}-m")).acquire().await?,
    ];
    let mut list = locks.list("")?;
    let mut found = 0;
    loop {
        let Some(page) = list.next_page().await? else {
            break;
        };
        found += page
            .iter()
            .filter(|lock| lock.name().as_str().contains(&name))
            .count();
    }
    assert_eq!(found, guards.len());
    for guard in guards {
        guard.release().await?;
    }
    Ok(())
}

async fn guarded(locks: &Locktopus, name: String, url: &str) -> Done {
    let guard = locks.lock(&name).acquire().await?;
    let client = locktopus::connect_client(url).await?;
    let fence: Fence = guard.fence().unwrap();
    let key = format!("app:{name}-value");
    for keep in [None, Some(SOON)] {
        let writer = GuardedWriter::new(client.clone()).keep_fences(keep);
        for written in [
            writer.set(&fence, key.as_bytes(), b"1").await?,
            writer.delete(&fence, key.as_bytes()).await?,
        ] {
            assert_eq!(written, GuardedOutcome::Written);
        }
    }
    client.close().await;
    Ok(guard.release().await?)
}
