//! Every script that grants a lock keeps the last token for at least twice the lease of the new
//! holder, also if the request that ran the script asked for less.
#![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

use std::sync::Arc;
use std::time::Duration;

use locktopus_core::{
    AcquireAttempt, AttemptOutcome, CounterAction, CounterRequest, GroupOutcome, LockBackend as _,
    LockKind, LockName, LockTarget, OwnerId, ReleaseOutcome, ReleaseRequest, TokenRetention,
    WakeStream,
};
use locktopus_model::ModelClient;
use locktopus_model::redis::ScriptTime;
use locktopus_protocol::{BackendOptions, Keys, RedisBackend};
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
/// Twice that is more than anybody asks the token to be kept for.
const LEASE: Duration = Duration::from_secs(600);

fn kinds() -> [LockKind; 7] {
    [
        LockKind::Reentrant,
        LockKind::Mutex(Arc::default()),
        LockKind::Fair,
        LockKind::Write,
        LockKind::Read,
        LockKind::Semaphore,
        LockKind::Permits,
    ]
}

struct Lock {
    client: Arc<ModelClient>,
    backend: RedisBackend,
    target: LockTarget,
}

impl Lock {
    /// A lock, its holder, and a subscription for its waiters.
    async fn held(kind: &LockKind, lease: Duration) -> (Self, OwnerId, WakeStream) {
        let client = Arc::new(ModelClient::default());
        client.server().script_time = ScriptTime::Frozen;
        let options = BackendOptions {
            token_retention: TokenRetention::from(MINUTE),
            ..BackendOptions::default()
        };
        let backend = RedisBackend::new(Arc::clone(&client) as _, options).await;
        let target = LockTarget::new(LockName::new("it").unwrap(), kind.clone());
        let lock = Self {
            client,
            backend: backend.unwrap(),
            target,
        };
        if matches!(kind, LockKind::Semaphore | LockKind::Permits) {
            lock.count(CounterAction::Initialise(1)).await;
        }
        let holding = match kind {
            LockKind::Read => LockKind::Write,
            kind => kind.clone(),
        };
        let owner = holding.new_owner();
        let target = LockTarget::new(LockName::new("it").unwrap(), holding);
        let granted = lock.attempt(&target, &owner, lease, None).await;
        assert!(
            matches!(granted, AttemptOutcome::Granted { .. }),
            "{kind:?}"
        );
        let soon = Instant::now() + SECOND;
        let heard = lock.backend.subscribe(&lock.target, soon).await.unwrap();
        (lock, owner, heard)
    }

    async fn count(&self, action: CounterAction) {
        let request = CounterRequest {
            target: self.target.clone(),
            operation: OwnerId::generate(),
            action,
            deadline: Instant::now() + SECOND,
        };
        let _ = self.backend.counter(&request).await.unwrap();
    }

    async fn attempt(
        &self,
        target: &LockTarget,
        owner: &OwnerId,
        lease: Duration,
        place: Option<Duration>,
    ) -> AttemptOutcome {
        let deadline = Instant::now() + SECOND;
        let attempt = AcquireAttempt {
            place,
            ..AcquireAttempt::new(target.clone(), owner.clone(), lease, deadline)
        };
        self.backend.attempt(&attempt).await.unwrap()
    }

    async fn wait(&self, lease: Duration) -> OwnerId {
        let owner = self.target.kind().new_owner();
        let queued = self
            .attempt(&self.target, &owner, lease, Some(LEASE * 4))
            .await;
        assert!(
            matches!(queued, AttemptOutcome::Queued { .. }),
            "{queued:?}"
        );
        owner
    }

    async fn release(&self, kind: LockKind, owner: &OwnerId) -> ReleaseOutcome {
        let target = LockTarget::new(self.target.name().clone(), kind);
        let request = ReleaseRequest::new(target, owner.clone(), Instant::now() + SECOND);
        self.backend.release(&request).await.unwrap()
    }

    async fn holds(&self, owner: &OwnerId) -> bool {
        let soon = Instant::now() + SECOND;
        let state = self.backend.inspect(&self.target, soon).await.unwrap();
        state.holders.iter().any(|holder| holder.owner == *owner)
    }

    /// For how long the last token is kept.
    fn kept(&self) -> Duration {
        let key = Keys::of(&self.target).token().unwrap().to_owned();
        let words = ["PTTL", &key].map(|word| word.as_bytes().to_vec());
        let left = self.client.server().command(&words).unwrap().as_int();
        Duration::from_millis(left.unwrap().try_into().unwrap())
    }

    fn pass(&self, time: Duration) {
        self.client.server().clock += i64::try_from(time.as_micros()).unwrap();
    }
}

fn holding(kind: &LockKind) -> LockKind {
    match kind {
        LockKind::Read => LockKind::Write,
        kind => kind.clone(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_keeps_the_token_for_the_next_holder() {
    for kind in kinds() {
        // One release in sixteen, by the clock, takes another way.
        for tick in 0..3 {
            let (lock, owner, _heard) = Lock::held(&kind, SECOND).await;
            lock.pass(Duration::from_micros(5 + tick));
            let next = lock.wait(LEASE).await;
            let released = lock.release(holding(&kind), &owner).await;
            assert_eq!(released, ReleaseOutcome::Released, "{kind:?}");
            assert!(lock.holds(&next).await, "{kind:?}");
            assert_eq!(lock.kept(), LEASE * 2, "{kind:?}");
        }
    }
}

/// Behind a deaf one, which ordinary releases do not pass.
#[tokio::test(start_paused = true)]
async fn a_release_that_passes_the_deaf_keeps_it_too() {
    for kind in kinds() {
        let (lock, owner, _heard) = Lock::held(&kind, SECOND).await;
        let options = BackendOptions::default();
        let deaf = Arc::new(lock.client.another());
        let deaf = RedisBackend::new(deaf as _, options).await.unwrap();
        let attempt = AcquireAttempt {
            place: Some(LEASE),
            ..AcquireAttempt::new(
                lock.target.clone(),
                kind.new_owner(),
                SECOND,
                Instant::now() + SECOND,
            )
        };
        let _ = deaf.attempt(&attempt).await.unwrap();
        let next = lock.wait(LEASE).await;
        let _ = lock.release(holding(&kind), &owner).await;
        assert!(lock.holds(&next).await, "{kind:?}");
        assert_eq!(lock.kept(), LEASE * 2, "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_finds_it_free_keeps_the_token_for_the_next_holder() {
    for kind in kinds() {
        let (lock, _, _heard) = Lock::held(&kind, SECOND).await;
        let next = lock.wait(LEASE).await;
        lock.pass(SECOND * 2);
        let other = kind.new_owner();
        let tried = lock.attempt(&lock.target, &other, SECOND, None).await;
        let granted = matches!(tried, AttemptOutcome::Granted { .. });
        assert_eq!(granted, kind == LockKind::Read, "{kind:?}");
        assert!(lock.holds(&next).await, "{kind:?}");
        // A reader that came with it has no token of its own.
        assert!(
            lock.kept() >= LEASE * 2 || kind == LockKind::Read,
            "{kind:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_eviction_keeps_the_token_for_the_next_holder() {
    for kind in kinds() {
        let (lock, _, _heard) = Lock::held(&kind, SECOND).await;
        let next = lock.wait(LEASE).await;
        let soon = Instant::now() + SECOND;
        lock.backend.evict(&lock.target, soon).await.unwrap();
        assert!(lock.holds(&next).await, "{kind:?}");
        assert_eq!(lock.kept(), LEASE * 2, "{kind:?}");
    }
}

/// The evicted holder may use its token until its lease would have ended.
#[tokio::test(start_paused = true)]
async fn an_eviction_keeps_its_own_token_for_the_one_that_is_evicted() {
    for kind in kinds().into_iter().filter(LockKind::has_tokens) {
        let (lock, _, _heard) = Lock::held(&kind, LEASE).await;
        lock.pass(LEASE / 2);
        let soon = Instant::now() + SECOND;
        lock.backend.evict(&lock.target, soon).await.unwrap();
        assert!(lock.kept() >= LEASE, "{kind:?}: {:?}", lock.kept());
    }
}

#[tokio::test(start_paused = true)]
async fn more_permits_keep_the_token_for_the_next_holder() {
    for kind in [LockKind::Semaphore, LockKind::Permits] {
        let (lock, _, _heard) = Lock::held(&kind, LEASE).await;
        let next = lock.wait(LEASE).await;
        lock.count(CounterAction::Add(1)).await;
        assert!(lock.holds(&next).await, "{kind:?}");
        assert_eq!(lock.kept(), LEASE * 2, "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_group_keeps_its_tokens_for_itself() {
    let (lock, owner, _heard) = Lock::held(&LockKind::Reentrant, SECOND).await;
    let _ = lock.release(LockKind::Reentrant, &owner).await;
    let deadline = Instant::now() + SECOND;
    let member = |lease| {
        let owner = LockKind::Reentrant.new_owner();
        AcquireAttempt::new(lock.target.clone(), owner, lease, deadline)
    };
    let taken = lock.backend.attempt_all(&[member(LEASE)]).await.unwrap();
    assert!(matches!(taken, GroupOutcome::Granted { .. }));
    assert_eq!(lock.kept(), LEASE * 2);
}
