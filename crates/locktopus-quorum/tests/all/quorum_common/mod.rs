//! Nodes of a quorum that tests can kill, freeze, slow down and make forget.
#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "helpers of tests are tests too, and each test program uses its part"
)]

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use locktopus_contract::{
    AcquireAttempt, Announcement, AttemptOutcome, BackendError, BackendErrorKind, BackendInfo,
    Diagnosis, Diagnostics, Directory, Eviction, Executed, ExtendOutcome, ExtendRequest,
    GroupOutcome, Groups, InstanceQuery, InstanceRecord, Instances, LockBackend, LockKind,
    LockName, LockPage, LockState, LockTarget, MutexProfile, NodeIdentity, NodeProbe,
    ReleaseOutcome, ReleaseRequest, ScanCursor,
};
use locktopus_core::Locktopus;
use locktopus_memory::MemoryBackend;
use locktopus_quorum::{QuorumBackend, QuorumBuilder};
use tokio::time::{Instant, sleep};

/// One server, and the connection to it.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub(crate) store: MemoryBackend,
    state: Arc<Mutex<State>>,
    info: Arc<BackendInfo>,
    /// Whether it keeps records of instances.
    keeps: bool,
}

#[derive(Debug)]
struct State {
    up: bool,
    frozen: bool,
    /// Longest random delay before and again after an execution.
    delay: Duration,
    /// The duration of every execution, half before and half after it.
    round_trip: Duration,
    /// Lost answers, out of 1,000.
    lost: u32,
    generation: u64,
    run: u64,
    started: Instant,
    dice: u64,
    calls: Vec<&'static str>,
}

/// A server that has been up for a year.
pub(crate) fn peer(seed: u64) -> Peer {
    let call_timeout = Duration::from_millis(100);
    Peer {
        store: MemoryBackend::new(),
        state: Arc::new(Mutex::new(State {
            up: true,
            frozen: false,
            delay: Duration::ZERO,
            round_trip: Duration::ZERO,
            lost: 0,
            generation: 1,
            run: seed << 32,
            started: Instant::now(),
            dice: seed,
            calls: Vec::new(),
        })),
        info: Arc::new(BackendInfo::new("peer", "peer (test)", call_timeout)),
        keeps: false,
    }
}

const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Peer {
    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.state.lock().unwrap())
    }

    /// The same server, but it keeps the records of instances.
    pub(crate) fn keeping_instances(mut self) -> Self {
        self.keeps = true;
        self
    }

    /// Makes calls fail from now on, including those under way.
    pub(crate) fn kill(&self) {
        self.with(|s| (s.up, s.generation) = (false, s.generation + 1));
    }

    /// Brings it back with all its data, as after a network failure.
    pub(crate) fn revive(&self) {
        self.with(|s| (s.up, s.generation) = (true, s.generation + 1));
    }

    /// Restarts it without its data.
    pub(crate) fn restart_empty(&self) {
        self.store.clear();
        self.with(|s| {
            (s.up, s.generation, s.run) = (true, s.generation + 1, s.run + 1);
            // Never as old again as at the beginning of the test.
            s.started = Instant::now() + YEAR;
        });
    }

    /// Makes calls hang. They run when the freeze ends.
    pub(crate) fn freeze(&self, frozen: bool) {
        self.with(|s| s.frozen = frozen);
    }

    pub(crate) fn delay(&self, delay: Duration) {
        self.with(|s| s.delay = delay);
    }

    pub(crate) fn far(&self, round_trip: Duration) {
        self.with(|s| s.round_trip = round_trip);
    }

    pub(crate) fn lose(&self, rate: u32) {
        self.with(|s| s.lost = rate);
    }

    pub(crate) fn calls(&self, what: &str) -> usize {
        self.with(|s| s.calls.iter().filter(|call| **call == what).count())
    }

    fn up_to(&self, most: Duration) -> Duration {
        self.with(|s| most * u32::try_from(next(&mut s.dice) % 1001).unwrap() / 1000)
    }

    /// Runs a call like a distant server: it may run even if the caller no longer waits.
    async fn call<T, Fut>(&self, what: &'static str, run: Fut) -> Result<T, BackendError>
    where
        T: Send + 'static,
        Fut: Future<Output = T> + Send + 'static,
    {
        let down = |executed| {
            let kind = BackendErrorKind::Unavailable;
            Err(BackendError::new("peer", kind, executed, "it is down"))
        };
        let (up, generation) = self.with(|s| {
            s.calls.push(what);
            (s.up, s.generation)
        });
        if !up {
            return down(Executed::No);
        }
        let peer = self.clone();
        let answer = async move {
            let way = peer.with(|s| s.round_trip) / 2;
            sleep(way + peer.up_to(peer.with(|s| s.delay))).await;
            while peer.with(|s| s.frozen) {
                sleep(Duration::from_millis(1)).await;
            }
            if peer.with(|s| s.generation) != generation {
                return None;
            }
            let answer = run.await;
            sleep(way + peer.up_to(peer.with(|s| s.delay))).await;
            let lost = peer.with(|s| next(&mut s.dice) % 1000 < u64::from(s.lost));
            (!lost && peer.with(|s| s.generation) == generation).then_some(answer)
        };
        let quick = self.with(|s| s.delay.is_zero() && s.round_trip.is_zero() && !s.frozen);
        let answer = if quick {
            answer.await
        } else {
            tokio::spawn(answer).await.unwrap()
        };
        answer.map_or_else(|| down(Executed::Maybe), Ok)
    }
}

/// SplitMix64.
pub(crate) fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[async_trait]
impl NodeProbe for Peer {
    fn generation(&self) -> u64 {
        self.with(|s| s.generation)
    }

    async fn identity(&self, _deadline: Instant) -> Result<NodeIdentity, BackendError> {
        let peer = self.clone();
        self.call("identity", async move {
            let (run, started) = peer.with(|s| (s.run, s.started));
            let uptime = (Instant::now() + YEAR).saturating_duration_since(started);
            NodeIdentity::new(format!("run-{run}"), uptime)
        })
        .await
    }
}

#[async_trait]
impl locktopus_contract::Layer for Peer {
    fn inner(&self) -> &dyn LockBackend {
        &self.store
    }

    fn info(&self) -> &BackendInfo {
        &self.info
    }

    /// The length of the name, so that batches must be split.
    fn shard(&self, target: &LockTarget) -> u32 {
        u32::try_from(target.name().as_str().len()).unwrap()
    }

    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
        let (store, attempt) = (self.store.clone(), attempt.clone());
        self.call("attempt", async move { store.attempt(&attempt).await })
            .await?
    }

    async fn release(&self, request: &ReleaseRequest) -> Result<ReleaseOutcome, BackendError> {
        let (store, request) = (self.store.clone(), request.clone());
        self.call("release", async move { store.release(&request).await })
            .await?
    }

    async fn extend(
        &self,
        batch: &[ExtendRequest],
        deadline: Instant,
    ) -> Vec<Result<ExtendOutcome, BackendError>> {
        let shard = |request: &ExtendRequest| LockBackend::shard(self, &request.target);
        assert!(batch.windows(2).all(|two| shard(&two[0]) == shard(&two[1])));
        let (store, requests) = (self.store.clone(), batch.to_vec());
        let run = async move { store.extend(&requests, deadline).await };
        match self.call("extend", run).await {
            Ok(answers) => answers,
            Err(e) => {
                let copy = |_| {
                    Err(BackendError::new(
                        "peer",
                        e.kind(),
                        e.executed(),
                        e.message(),
                    ))
                };
                batch.iter().map(copy).collect()
            }
        }
    }

    async fn inspect(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<LockState, BackendError> {
        let (store, target) = (self.store.clone(), target.clone());
        let run = async move { store.inspect(&target, deadline).await };
        self.call("inspect", run).await?
    }

    fn groups(&self) -> Option<&dyn Groups> {
        Some(self)
    }

    fn directory(&self) -> Option<&dyn Directory> {
        Some(self)
    }

    fn instances(&self) -> Option<&dyn Instances> {
        self.keeps.then_some(self as _)
    }

    fn diagnosis(&self) -> Option<&dyn Diagnostics> {
        Some(self)
    }
}

#[async_trait]
impl Groups for Peer {
    fn group(&self, target: &LockTarget) -> Option<u32> {
        self.store.group(target)
    }

    async fn attempt_all(&self, attempts: &[AcquireAttempt]) -> Result<GroupOutcome, BackendError> {
        let (store, attempts) = (self.store.clone(), attempts.to_vec());
        let run = async move { store.attempt_all(&attempts).await };
        self.call("attempt_all", run).await?
    }
}

#[async_trait]
impl Directory for Peer {
    async fn scan(
        &self,
        prefix: &str,
        cursor: Option<ScanCursor>,
        deadline: Instant,
    ) -> Result<LockPage, BackendError> {
        let (store, prefix) = (self.store.clone(), prefix.to_owned());
        let run = async move { store.scan(&prefix, cursor, deadline).await };
        self.call("scan", run).await?
    }

    async fn evict(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<Eviction, BackendError> {
        let (store, target) = (self.store.clone(), target.clone());
        let run = async move { store.evict(&target, deadline).await };
        self.call("evict", run).await?
    }
}

#[async_trait]
impl Instances for Peer {
    async fn announce(&self, announcement: &Announcement) -> Result<(), BackendError> {
        let (store, announcement) = (self.store.clone(), announcement.clone());
        let run = async move { store.announce(&announcement).await };
        self.call("announce", run).await?
    }

    async fn records(
        &self,
        query: &InstanceQuery,
    ) -> Result<Vec<Option<InstanceRecord>>, BackendError> {
        let (store, query) = (self.store.clone(), query.clone());
        let run = async move { store.records(&query).await };
        self.call("instances", run).await?
    }
}

#[async_trait]
impl Diagnostics for Peer {
    async fn diagnose(&self, _deadline: Instant) -> Result<Diagnosis, BackendError> {
        let run = self.with(|s| s.run);
        self.call("diagnose", async move {
            Diagnosis {
                nodes: vec![format!("127.0.0.1:{run}")],
                ..Diagnosis::default()
            }
        })
        .await
    }
}

pub(crate) fn peers(count: usize, seed: u64) -> Vec<Peer> {
    (0..count as u64).map(|n| peer(seed * 100 + n)).collect()
}

const LABELS: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];

/// The nodes with their probes.
pub(crate) fn probed(peers: &[Peer]) -> QuorumBuilder {
    let nodes = peers.iter().zip(LABELS);
    nodes.fold(QuorumBackend::builder(), |builder, (peer, label)| {
        builder.probed_node(label, Arc::new(peer.clone()), Arc::new(peer.clone()))
    })
}

/// The nodes as if they never forgot.
pub(crate) fn trusted(peers: &[Peer]) -> QuorumBuilder {
    let nodes = peers.iter().zip(LABELS);
    nodes.fold(QuorumBackend::builder(), |builder, (peer, label)| {
        builder.node(label, Arc::new(peer.clone()))
    })
}

/// So many nodes, and the quorum that asks who they are.
pub(crate) fn probing(count: usize, seed: u64) -> (Vec<Peer>, QuorumBackend) {
    let peers = peers(count, seed);
    let quorum = probed(&peers).build().unwrap();
    (peers, quorum)
}

/// So many nodes, and the quorum that trusts them.
pub(crate) fn trusting(count: usize, seed: u64) -> (Vec<Peer>, QuorumBackend) {
    let peers = peers(count, seed);
    let quorum = trusted(&peers).build().unwrap();
    (peers, quorum)
}

pub(crate) fn locks(quorum: QuorumBackend) -> Locktopus {
    Locktopus::builder(quorum).build().unwrap()
}

pub(crate) fn mutex(name: &str) -> LockTarget {
    LockTarget::new(
        LockName::new(name).unwrap(),
        LockKind::Mutex(Arc::new(MutexProfile::default())),
    )
}

/// Polls a future this many times and drops it.
pub(crate) async fn cut<F: Future>(polls: usize, future: F) -> Option<F::Output> {
    let mut future: Pin<Box<F>> = Box::pin(future);
    let mut left = polls;
    std::future::poll_fn(move |cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Lets time pass until `check` holds, for at most a minute.
pub(crate) async fn until(what: &str, check: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !check() {
        assert!(Instant::now() < end, "{what}: not within a minute");
        sleep(Duration::from_millis(1)).await;
    }
}

pub(crate) fn holders(peers: &[Peer]) -> usize {
    peers.iter().map(|peer| peer.store.population().0).sum()
}
