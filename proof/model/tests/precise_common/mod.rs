//! A lock on a modelled server whose clock only the test moves, and all operations on it.

use std::sync::Arc;
use std::time::Duration;

use locktopus_core::{
    AcquireAttempt, AttemptOutcome, CounterAction, CounterRequest, Counters as _, ExtendOutcome,
    ExtendRequest, LockBackend as _, LockKind, LockName, LockState, LockTarget, OwnerId,
    ReleaseOutcome, ReleaseRequest, SafetyMode, WakeStream, WakeUps as _,
};
use locktopus_model::redis::ScriptTime;
use locktopus_model::{ModelClient, was_here};
use locktopus_protocol::{BackendOptions, RedisBackend, RedisClient};
use tokio::time::Instant;

/// Longer than any call takes.
const CALL: Duration = Duration::from_secs(1);

/// Every kind that can be held. Semaphores have one permit.
pub(crate) fn kinds() -> Vec<LockKind> {
    vec![
        LockKind::Reentrant,
        LockKind::Mutex(Arc::default()),
        LockKind::Fair,
        LockKind::Read,
        LockKind::Write,
        LockKind::Semaphore,
        LockKind::PermitSemaphore,
    ]
}

pub(crate) struct Lock {
    pub(crate) client: Arc<ModelClient>,
    pub(crate) target: LockTarget,
    pub(crate) backend: Arc<RedisBackend>,
}

impl Lock {
    pub(crate) async fn of(kind: LockKind) -> Self {
        Self::of_many(kind, 1).await
    }

    /// With so many permits, if it is a semaphore.
    pub(crate) async fn of_many(kind: LockKind, permits: u64) -> Self {
        let options = BackendOptions::default();
        Self::on(ModelClient::default(), kind, permits, options).await
    }

    /// On a server that has run without interruption, as far as it knows, and with this epoch from
    /// the sentinels.
    pub(crate) async fn quarantined(max_lease: Duration, epoch: Option<u64>) -> Self {
        let client = ModelClient::default();
        let replid = client.server().replid.clone();
        client.server().command(&was_here(&replid)).unwrap();
        client.hear_epoch(epoch);
        let options = BackendOptions {
            safety: SafetyMode::Quarantine { max_lease },
            ..BackendOptions::default()
        };
        Self::on(client, LockKind::Reentrant, 1, options).await
    }

    pub(crate) async fn on(
        client: ModelClient,
        kind: LockKind,
        permits: u64,
        options: BackendOptions,
    ) -> Self {
        let client = Arc::new(client);
        client.server().script_time = ScriptTime::Frozen;
        let connected = Arc::clone(&client) as Arc<dyn RedisClient>;
        let backend = RedisBackend::new(connected, options);
        let target = LockTarget::new(LockName::new("it").unwrap(), kind);
        let lock = Self {
            client,
            target,
            backend: Arc::new(backend.await.unwrap()),
        };
        if matches!(
            lock.target.kind(),
            LockKind::Semaphore | LockKind::PermitSemaphore
        ) {
            let _ = lock.count(CounterAction::Initialise(permits)).await;
        }
        lock
    }

    pub(crate) async fn count(&self, action: CounterAction) -> Option<i64> {
        let request = CounterRequest {
            target: self.target.clone(),
            operation: OwnerId::generate(),
            action,
            deadline: Instant::now() + CALL,
        };
        self.backend.counter(&request).await.unwrap().value
    }

    /// How many permits are free, according to the number's own script.
    pub(crate) async fn free_permits(&self) -> Option<i64> {
        self.count(CounterAction::Read).await
    }

    /// The same name as another kind.
    pub(crate) fn as_kind(&self, kind: LockKind) -> Self {
        Self {
            client: Arc::clone(&self.client),
            target: LockTarget::new(LockName::new("it").unwrap(), kind),
            backend: Arc::clone(&self.backend),
        }
    }

    fn request(&self, owner: &OwnerId, lease: Duration) -> AcquireAttempt {
        let deadline = Instant::now() + CALL;
        AcquireAttempt::new(self.target.clone(), owner.clone(), lease, deadline)
    }

    async fn ask(&self, attempt: &AcquireAttempt) -> AttemptOutcome {
        self.backend.attempt(attempt).await.unwrap()
    }

    /// One attempt by another owner. If the lock is for reading, it asks to write, since readers
    /// block that.
    pub(crate) async fn attempt(&self, owner: &OwnerId, lease: Duration) -> AttemptOutcome {
        let kind = match self.target.kind() {
            LockKind::Read => LockKind::Write,
            kind => kind.clone(),
        };
        let other = self.as_kind(kind);
        other.ask(&other.request(owner, lease)).await
    }

    /// One attempt.
    pub(crate) async fn attempt_only(&self, owner: &OwnerId) -> AttemptOutcome {
        self.ask(&self.request(owner, Duration::from_secs(60)))
            .await
    }

    pub(crate) async fn take(&self, owner: &OwnerId, lease: Duration) -> Option<u64> {
        self.take_with(owner, lease, 1).await
    }

    pub(crate) async fn take_with(
        &self,
        owner: &OwnerId,
        lease: Duration,
        tokens: u32,
    ) -> Option<u64> {
        let attempt = AcquireAttempt {
            tokens,
            ..self.request(owner, lease)
        };
        granted(self.ask(&attempt).await)
    }

    /// Takes so many permits of a semaphore, or any other lock as a whole.
    pub(crate) async fn take_permits(&self, owner: &OwnerId, lease: Duration, permits: u32) {
        let counted = matches!(
            self.target.kind(),
            LockKind::Semaphore | LockKind::PermitSemaphore
        );
        let attempt = AcquireAttempt {
            permits: if counted { permits } else { 1 },
            ..self.request(owner, lease)
        };
        granted(self.ask(&attempt).await);
    }

    /// Queues for `place`.
    pub(crate) async fn wait(&self, owner: &OwnerId, lease: Duration, place: Duration) {
        let attempt = AcquireAttempt {
            place: Some(place),
            ..self.request(owner, lease)
        };
        let queued = self.ask(&attempt).await;
        let in_line = matches!(queued, AttemptOutcome::Queued { .. });
        assert!(in_line, "{queued:?}");
    }

    /// A waiter polls and gets the lock.
    pub(crate) async fn wait_or_take(&self, owner: &OwnerId, lease: Duration) {
        let attempt = AcquireAttempt {
            place: Some(lease),
            ..self.request(owner, lease)
        };
        granted(self.ask(&attempt).await);
    }

    /// The owners of its holders.
    pub(crate) async fn holders(&self) -> Vec<OwnerId> {
        let holders = self.inspect().await.holders.into_iter();
        holders.map(|holder| holder.owner).collect()
    }

    pub(crate) async fn release(&self, owner: &OwnerId) -> ReleaseOutcome {
        let deadline = Instant::now() + CALL;
        let request = ReleaseRequest::new(self.target.clone(), owner.clone(), deadline);
        self.backend.release(&request).await.unwrap()
    }

    pub(crate) async fn extend(&self, owner: &OwnerId, lease: Duration) -> ExtendOutcome {
        let batch = [ExtendRequest::new(
            self.target.clone(),
            owner.clone(),
            lease,
        )];
        let mut answers = self.backend.extend(&batch, Instant::now() + CALL).await;
        answers.remove(0).unwrap()
    }

    pub(crate) async fn inspect(&self) -> LockState {
        let deadline = Instant::now() + CALL;
        self.backend.inspect(&self.target, deadline).await.unwrap()
    }

    /// Listens, so that a release can hand over the lock.
    pub(crate) async fn listen(&self) -> WakeStream {
        let deadline = Instant::now() + CALL;
        self.backend
            .subscribe(&self.target, deadline)
            .await
            .unwrap()
    }

    pub(crate) fn pass(&self, time: Duration) {
        self.client.server().clock += i64::try_from(time.as_micros()).unwrap();
    }
}

/// The token of a grant, if it has one.
fn granted(outcome: AttemptOutcome) -> Option<u64> {
    match outcome {
        AttemptOutcome::Granted { token } => token.map(u64::from),
        other => panic!("not granted: {other:?}"),
    }
}

pub(crate) fn is_granted(outcome: &AttemptOutcome) -> bool {
    matches!(outcome, AttemptOutcome::Granted { .. })
}

/// The remaining lease of the holder.
pub(crate) fn held_for(outcome: &AttemptOutcome) -> Option<Duration> {
    match outcome {
        AttemptOutcome::Busy { remaining } => *remaining,
        _ => None,
    }
}
