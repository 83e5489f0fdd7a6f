//! The embedded backend under a script, with every call recorded.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "helpers of tests are tests too, and each test program uses its part"
)]

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use locktopus_core::{
    AcquireAttempt, Announcement, AttemptOutcome, BackendError, BackendErrorKind, BackendInfo,
    CounterOutcome, CounterRequest, Counters, Directory, DynBackend, Eviction, Executed,
    ExtendOutcome, ExtendRequest, InstanceQuery, InstanceRecord, Instances, LockBackend, LockPage,
    LockState, LockTarget, Locktopus, LocktopusBuilder, OwnerId, ReleaseOutcome, ReleaseRequest,
    SafetyMode, ScanCursor, TokenRetention, WakeGroup, WakeStream, WakeUps,
};
use locktopus_memory::MemoryBackend;
use tokio::time::{Instant, sleep};
use tracing::Dispatch;
use tracing::subscriber::{DefaultGuard, NoSubscriber};

/// Sends this thread's log to a subscriber. While a process has only one, tracing-core 0.1.36 asks
/// the thread that first reaches a log line whether there is a listener, and that may be a thread
/// of another test. So there are always two.
pub(crate) fn listen(subscriber: impl tracing::Subscriber + Send + Sync) -> DefaultGuard {
    static NOBODY: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));
    LazyLock::force(&NOBODY);
    tracing::subscriber::set_default(subscriber)
}

/// The fate of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Pass,
    /// Fails without having run.
    Refuse,
    /// Fails for good without having run.
    Deny,
    /// Runs; the answer is lost.
    LoseReply,
    /// Runs on too few replicas, and may or may not have been undone.
    Unconfirmed,
    /// Runs at once; the answer is delayed by this time.
    SlowReply(Duration),
    /// The same on a backend that keeps to the deadline of an attempt or a count. After the
    /// deadline the error says that the call may have run.
    SlowReplyInTime(Duration),
    /// Runs after the given time, even if the call is dropped before.
    Late(Duration),
    /// Never returns, does not run.
    Hang,
}

/// A recorded call.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) what: &'static str,
    pub(crate) at: Instant,
    pub(crate) owners: Vec<OwnerId>,
    pub(crate) names: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct Scripted {
    pub(crate) store: MemoryBackend,
    state: Arc<Mutex<State>>,
    info: Arc<BackendInfo>,
}

#[derive(Debug, Default)]
struct State {
    log: Vec<Call>,
    /// What each release said about tokens.
    retentions: Vec<Option<TokenRetention>>,
    next: Vec<(&'static str, VecDeque<Fate>)>,
    always: Vec<(&'static str, Fate)>,
    hanging_shard: Option<u32>,
    /// Streams made after `deafen` hear only what is sent to this group.
    deaf: Option<Arc<WakeGroup>>,
}

impl Scripted {
    pub(crate) fn new() -> Self {
        Self::with_call_timeout(Duration::from_millis(100))
    }

    pub(crate) fn with_locks() -> (Self, Locktopus) {
        let script = Self::new();
        let locks = script.locks();
        (script, locks)
    }

    pub(crate) fn with_call_timeout(call_timeout: Duration) -> Self {
        let info = BackendInfo {
            supports_recall: true,
            longest_linger: Duration::MAX,
            ..BackendInfo::new("scripted", "scripted (test)", call_timeout)
        };
        Self {
            store: MemoryBackend::new(),
            state: Arc::default(),
            info: Arc::new(info),
        }
    }

    /// Reports a safety mode, and a queue. Its script does the rest.
    pub(crate) fn with_safety(self, safety: SafetyMode) -> Self {
        self.saying(|info| (info.supports_queue, info.safety) = (true, safety))
    }

    /// Supports no minimum hold time.
    pub(crate) fn without_linger(self) -> Self {
        self.saying(|info| info.longest_linger = Duration::ZERO)
    }

    /// Changes the information that it reports.
    pub(crate) fn saying(mut self, change: impl FnOnce(&mut BackendInfo)) -> Self {
        change(Arc::make_mut(&mut self.info));
        self
    }

    pub(crate) fn builder(&self) -> LocktopusBuilder {
        Locktopus::builder_dyn(Arc::new(self.clone()) as DynBackend)
    }

    pub(crate) fn locks(&self) -> Locktopus {
        self.builder().build().unwrap()
    }

    /// Another client of the same store, without a script.
    pub(crate) fn other(&self) -> Locktopus {
        Locktopus::builder(self.store.another_client())
            .build()
            .unwrap()
    }

    /// The fates of the next calls of this name.
    pub(crate) fn next(&self, what: &'static str, fates: impl IntoIterator<Item = Fate>) {
        let mut state = self.state.lock().unwrap();
        state.next.retain(|(name, _)| *name != what);
        state.next.push((what, fates.into_iter().collect()));
    }

    /// The fate of every call of this name that has no other.
    pub(crate) fn always(&self, what: &'static str, fate: Fate) {
        let mut state = self.state.lock().unwrap();
        state.always.retain(|(name, _)| *name != what);
        state.always.push((what, fate));
    }

    /// Extensions of this shard never return.
    pub(crate) fn hang_shard(&self, shard: Option<u32>) {
        self.state.lock().unwrap().hanging_shard = shard;
    }

    fn hangs(&self, target: &LockTarget) -> bool {
        self.state.lock().unwrap().hanging_shard == Some(self.shard(target))
    }

    /// Messages to subscriptions made from now on are lost; they hear only the returned group.
    pub(crate) fn deafen(&self) -> Arc<WakeGroup> {
        let group = Arc::<WakeGroup>::default();
        self.state.lock().unwrap().deaf = Some(Arc::clone(&group));
        group
    }

    /// The calls of this name so far.
    pub(crate) fn retentions(&self) -> Vec<Option<TokenRetention>> {
        self.state.lock().unwrap().retentions.clone()
    }

    pub(crate) fn calls(&self, what: &str) -> Vec<Call> {
        let state = self.state.lock().unwrap();
        state
            .log
            .iter()
            .filter(|call| call.what == what)
            .cloned()
            .collect()
    }

    fn fate(&self, what: &'static str, who: Vec<(&LockTarget, OwnerId)>) -> Fate {
        let mut state = self.state.lock().unwrap();
        state.log.push(Call {
            what,
            at: Instant::now(),
            names: who
                .iter()
                .map(|(t, _)| t.name().as_str().to_owned())
                .collect(),
            owners: who.into_iter().map(|(_, owner)| owner).collect(),
        });
        let next = state.next.iter_mut().find(|(name, _)| *name == what);
        let next = next.and_then(|(_, fates)| fates.pop_front());
        let always = state.always.iter().find(|(name, _)| *name == what);
        next.or_else(|| always.map(|(_, fate)| *fate))
            .unwrap_or(Fate::Pass)
    }

    async fn call<T, Fut>(&self, fate: Fate, run: Fut) -> Result<T, BackendError>
    where
        T: Send + 'static,
        Fut: Future<Output = T> + Send + 'static,
    {
        match fate {
            Fate::Pass => Ok(run.await),
            Fate::Refuse => Err(error(BackendErrorKind::Unavailable, Executed::No)),
            Fate::Deny => Err(error(BackendErrorKind::Denied, Executed::No)),
            Fate::LoseReply => {
                run.await;
                Err(error(BackendErrorKind::Timeout, Executed::Maybe))
            }
            Fate::Unconfirmed => {
                run.await;
                Err(error(BackendErrorKind::NotReplicated, Executed::Maybe))
            }
            Fate::SlowReply(delay) | Fate::SlowReplyInTime(delay) => {
                let answer = run.await;
                sleep(delay).await;
                Ok(answer)
            }
            Fate::Late(delay) => {
                let late = tokio::spawn(async move {
                    sleep(delay).await;
                    run.await
                });
                Ok(late.await.unwrap())
            }
            Fate::Hang => std::future::pending().await,
        }
    }

    async fn call_in_time<T, Fut>(
        &self,
        fate: Fate,
        deadline: Instant,
        run: Fut,
    ) -> Result<T, BackendError>
    where
        T: Send + 'static,
        Fut: Future<Output = T> + Send + 'static,
    {
        let Fate::SlowReplyInTime(_) = fate else {
            return self.call(fate, run).await;
        };
        let late = |_| Err(error(BackendErrorKind::Timeout, Executed::Maybe));
        let answer = tokio::time::timeout_at(deadline, self.call(fate, run)).await;
        answer.unwrap_or_else(late)
    }
}

fn error(kind: BackendErrorKind, executed: Executed) -> BackendError {
    BackendError::new("scripted", kind, executed, "as the script says")
}

#[async_trait]
impl locktopus_core::Layer for Scripted {
    fn inner(&self) -> &dyn LockBackend {
        &self.store
    }

    fn info(&self) -> &BackendInfo {
        &self.info
    }

    /// The shard is the first letter of the name.
    fn shard(&self, target: &LockTarget) -> u32 {
        u32::from(target.name().as_str().as_bytes()[0])
    }

    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
        let mut fate = self.fate("attempt", vec![(&attempt.target, attempt.owner.clone())]);
        if self.hangs(&attempt.target) {
            fate = Fate::Hang;
        }
        let (store, attempt) = (self.store.clone(), attempt.clone());
        let deadline = attempt.deadline;
        let run = async move { store.attempt(&attempt).await };
        self.call_in_time(fate, deadline, run).await?
    }

    async fn release(&self, request: &ReleaseRequest) -> Result<ReleaseOutcome, BackendError> {
        let fate = self.fate("release", vec![(&request.target, request.owner.clone())]);
        let said = request.token_retention;
        self.state.lock().unwrap().retentions.push(said);
        let (store, request) = (self.store.clone(), request.clone());
        self.call(fate, async move { store.release(&request).await })
            .await?
    }

    async fn extend(
        &self,
        batch: &[ExtendRequest],
        deadline: Instant,
    ) -> Vec<Result<ExtendOutcome, BackendError>> {
        let who = batch.iter().map(|r| (&r.target, r.owner.clone())).collect();
        let mut fate = self.fate("extend", who);
        let hanging = self.state.lock().unwrap().hanging_shard;
        if hanging.is_some_and(|shard| shard == LockBackend::shard(self, &batch[0].target)) {
            fate = Fate::Hang;
        }
        let (store, requests) = (self.store.clone(), batch.to_vec());
        let run = async move { store.extend(&requests, deadline).await };
        match self.call(fate, run).await {
            Ok(answers) => answers,
            Err(e) => batch
                .iter()
                .map(|_| Err(error(e.kind(), e.executed())))
                .collect(),
        }
    }

    async fn inspect(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<LockState, BackendError> {
        let fate = self.fate("inspect", Vec::new());
        let (store, target) = (self.store.clone(), target.clone());
        self.call(fate, async move { store.inspect(&target, deadline).await })
            .await?
    }

    fn wake_ups(&self) -> Option<&dyn WakeUps> {
        Some(self)
    }

    fn counters(&self) -> Option<&dyn Counters> {
        Some(self)
    }

    fn directory(&self) -> Option<&dyn Directory> {
        Some(self)
    }

    fn instances(&self) -> Option<&dyn Instances> {
        Some(self)
    }
}

#[async_trait]
impl WakeUps for Scripted {
    fn listen(&self, target: &LockTarget) -> Option<WakeStream> {
        self.store.listen(target)
    }

    async fn subscribe(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<WakeStream, BackendError> {
        let fate = self.fate("subscribe", Vec::new());
        let deaf = self.state.lock().unwrap().deaf.clone();
        if let Some(group) = deaf {
            return self.call(fate, async move { group.join(()) }).await;
        }
        let (store, target) = (self.store.clone(), target.clone());
        self.call(
            fate,
            async move { store.subscribe(&target, deadline).await },
        )
        .await?
    }
}

#[async_trait]
impl Counters for Scripted {
    async fn counter(&self, request: &CounterRequest) -> Result<CounterOutcome, BackendError> {
        let fate = self.fate(
            "counter",
            vec![(&request.target, request.operation.clone())],
        );
        let (store, request) = (self.store.clone(), request.clone());
        let deadline = request.deadline;
        let run = async move { store.counter(&request).await };
        self.call_in_time(fate, deadline, run).await?
    }
}

#[async_trait]
impl Directory for Scripted {
    async fn scan(
        &self,
        prefix: &str,
        cursor: Option<ScanCursor>,
        deadline: Instant,
    ) -> Result<LockPage, BackendError> {
        let fate = self.fate("scan", Vec::new());
        let (store, prefix) = (self.store.clone(), prefix.to_owned());
        self.call(
            fate,
            async move { store.scan(&prefix, cursor, deadline).await },
        )
        .await?
    }

    async fn evict(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<Eviction, BackendError> {
        let fate = self.fate("evict", Vec::new());
        let (store, target) = (self.store.clone(), target.clone());
        self.call(fate, async move { store.evict(&target, deadline).await })
            .await?
    }
}

#[async_trait]
impl Instances for Scripted {
    async fn announce(&self, announcement: &Announcement) -> Result<(), BackendError> {
        let fate = self.fate("announce", Vec::new());
        let (store, announcement) = (self.store.clone(), announcement.clone());
        self.call(fate, async move { store.announce(&announcement).await })
            .await?
    }

    async fn records(
        &self,
        query: &InstanceQuery,
    ) -> Result<Vec<Option<InstanceRecord>>, BackendError> {
        let fate = self.fate("instances", Vec::new());
        let (store, query) = (self.store.clone(), query.clone());
        self.call(fate, async move { store.records(&query).await })
            .await?
    }
}

/// Durations: the extremes, and values close to where clocks, timers and sums overflow.
pub(crate) fn extremes() -> Vec<Duration> {
    let mut all = vec![
        Duration::ZERO,
        Duration::from_nanos(1),
        Duration::from_millis(20),
        Duration::from_secs(30),
        Duration::from_millis(u64::MAX),
        Duration::from_nanos(u64::MAX),
        Duration::from_secs(i64::MAX as u64),
        Duration::from_secs(i64::MAX as u64 - 1_000),
        Duration::MAX,
    ];
    all.extend([2, 3, 4, 1_000].map(|part| Duration::MAX / part));
    all
}

/// Lets time pass until `check` holds, for at most a minute.
pub(crate) async fn until(what: &str, check: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !check() {
        assert!(Instant::now() < end, "{what}: not within a minute");
        sleep(Duration::from_millis(1)).await;
    }
}
