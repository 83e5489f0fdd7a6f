//! RedLock's tokens: the client's proposals, the nodes' answers, and the cost.

use crate::quorum_common;

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use locktopus_contract::{
    AcquireAttempt, AttemptOutcome, BackendError, BackendInfo, FencingToken, LockBackend, LockKind,
    LockTarget, MutexProfile, OwnerId, ReleaseOutcome, ReleaseRequest,
};
use locktopus_memory::MemoryBackend;
use locktopus_quorum::QuorumBackend;
use quorum_common::{mutex, until};
use tokio::time::{Instant, sleep};

const LEASE: Duration = Duration::from_secs(10);
const ROUND_TRIP: Duration = Duration::from_millis(10);
const NODES: usize = 5;
const MAJORITY: usize = 3;
const HOUR: i64 = 3_600_000_000;
/// The store counts from the time of day at its creation. Behind that, it would not show the clock
/// of its server.
const YEARS: u64 = 10 * 365 * 24 * 3_600_000_000;

/// A server at a set distance. Its tokens are never below its clock, as on Redis.
#[derive(Debug, Clone)]
struct Clocked {
    store: MemoryBackend,
    info: Arc<BackendInfo>,
    /// Its clock at the beginning, in microseconds, and the instant of that reading.
    clock: (i64, Instant),
    floors: Arc<Mutex<Vec<Option<FencingToken>>>>,
    releases: Arc<Mutex<usize>>,
    away: Arc<Mutex<bool>>,
}

impl Clocked {
    /// A server whose clock is this many microseconds ahead.
    fn new(ahead: i64) -> Self {
        let timeout = Duration::from_secs(1);
        let wall = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros();
        Self {
            store: MemoryBackend::new(),
            info: Arc::new(BackendInfo::new("clocked", "test", timeout)),
            clock: (i64::try_from(wall).unwrap() + ahead, Instant::now()),
            floors: Arc::default(),
            releases: Arc::default(),
            away: Arc::default(),
        }
    }

    fn now(&self) -> u64 {
        let (begun, at) = self.clock;
        u64::try_from(begun).unwrap() + u64::try_from(at.elapsed().as_micros()).unwrap()
    }

    fn attempts(&self) -> usize {
        self.floors.lock().unwrap().len()
    }

    fn calls(&self) -> usize {
        self.attempts() + *self.releases.lock().unwrap()
    }

    fn go_away(&self, away: bool) {
        *self.away.lock().unwrap() = away;
    }
}

#[async_trait]
impl locktopus_contract::Layer for Clocked {
    fn inner(&self) -> &dyn LockBackend {
        &self.store
    }

    fn info(&self) -> &BackendInfo {
        &self.info
    }

    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
        self.floors.lock().unwrap().push(attempt.floor);
        if *self.away.lock().unwrap() {
            sleep(Duration::from_secs(3600)).await;
        }
        sleep(ROUND_TRIP / 2).await;
        let mut attempt = attempt.clone();
        let shifted = |token: u64| FencingToken::new(token + YEARS);
        attempt.floor = attempt.floor.and_then(|floor| shifted(floor.get()));
        let state = self
            .store
            .inspect(&attempt.target, attempt.deadline)
            .await?;
        let repeated = state.holder().is_some_and(|h| h.owner == attempt.owner);
        if !repeated && attempt.target.kind().has_tokens() {
            attempt.floor = attempt.floor.max(shifted(self.now()));
        }
        let mut answer = self.store.attempt(&attempt).await;
        if let Ok(AttemptOutcome::Granted { token }) = &mut answer {
            *token = token.and_then(|token| FencingToken::new(token.get() - YEARS));
        }
        sleep(ROUND_TRIP / 2).await;
        answer
    }

    async fn release(&self, request: &ReleaseRequest) -> Result<ReleaseOutcome, BackendError> {
        *self.releases.lock().unwrap() += 1;
        sleep(ROUND_TRIP / 2).await;
        let answer = self.store.release(request).await;
        sleep(ROUND_TRIP / 2).await;
        answer
    }
}

/// Nodes whose clocks are this far ahead, in microseconds.
fn nodes(ahead: [i64; NODES]) -> Vec<Clocked> {
    ahead.map(Clocked::new).to_vec()
}

fn quorum(nodes: &[Clocked]) -> QuorumBackend {
    let labels = ["a", "b", "c", "d", "e"];
    let builder = nodes.iter().zip(labels);
    builder
        .fold(QuorumBackend::builder(), |builder, (node, label)| {
            builder.node(label, Arc::new(node.clone()))
        })
        .build()
        .unwrap()
}

fn attempt(target: &LockTarget, owner: &OwnerId) -> AcquireAttempt {
    let deadline = Instant::now() + Duration::from_secs(5);
    AcquireAttempt::new(target.clone(), owner.clone(), LEASE, deadline)
}

async fn take(quorum: &QuorumBackend, target: &LockTarget, owner: &OwnerId) -> FencingToken {
    match quorum.attempt(&attempt(target, owner)).await.unwrap() {
        AttemptOutcome::Granted { token: Some(token) } => token,
        other => panic!("{other:?}"),
    }
}

async fn give_back(quorum: &QuorumBackend, target: &LockTarget, owner: &OwnerId) {
    let deadline = Instant::now() + Duration::from_secs(5);
    let request = ReleaseRequest::new(target.clone(), owner.clone(), deadline);
    let released = quorum.release(&request).await.unwrap();
    assert_eq!(released, ReleaseOutcome::Released);
}

/// Takes and releases once. Returns the token, how long taking took, and the number of calls.
async fn pair(quorum: &QuorumBackend, nodes: &[Clocked]) -> (FencingToken, Duration, usize) {
    let calls = || nodes.iter().map(Clocked::calls).sum::<usize>();
    let (target, owner, before) = (mutex("job"), OwnerId::generate(), calls());
    let begun = Instant::now();
    let token = take(quorum, &target, &owner).await;
    let took = begun.elapsed();
    give_back(quorum, &target, &owner).await;
    until("stragglers", || quorum.background_tasks() == 0).await;
    (token, took, calls() - before)
}

/// Tokio's timers are exact to the millisecond.
fn round_trips(time: Duration) -> u128 {
    (time.as_millis() + 4) / ROUND_TRIP.as_millis()
}

#[tokio::test(start_paused = true)]
async fn a_lock_is_taken_in_one_round_trip_and_ten_commands() {
    // Clocks that differ by less than the minimum slack, and clocks that are behind.
    for ahead in [[0, 7, 13, 211, 499], [-3_000, -40_000, 0, -900, 20]] {
        let nodes = nodes(ahead);
        let quorum = quorum(&nodes);
        for _ in 0..2 {
            pair(&quorum, &nodes).await; // It measures the clocks and the round trip.
        }
        let (mut calls, mut second_rounds, mut last) = (0, 0, None);
        for _ in 0..100 {
            let (token, took, cost) = pair(&quorum, &nodes).await;
            second_rounds += round_trips(took) - 1;
            assert!(Some(token) > last, "{token:?} after {last:?}");
            (last, calls) = (Some(token), calls + cost);
        }
        // Shrinking slack is occasionally too small.
        assert!(second_rounds <= 2, "{second_rounds} of 100, {ahead:?}");
        assert!(calls <= 1010, "{calls} commands of 100 pairs, {ahead:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_ahead_is_followed_within_bounds_and_beyond_them_its_token_is_written_back() {
    for (ahead, follows) in [(300_000, true), (HOUR, false)] {
        // Three nodes answer, one of them ahead, so every majority includes it.
        let nodes = nodes([0, 1, ahead, 0, 1]);
        nodes[3].go_away(true);
        nodes[4].go_away(true);
        let quorum = quorum(&nodes);
        let (mut last, mut agreed) = (None, 0);
        for round in 0..60 {
            let (target, owner) = (mutex("job"), OwnerId::generate());
            let begun = Instant::now();
            let token = take(&quorum, &target, &owner).await;
            agreed += usize::from(round >= 20 && round_trips(begun.elapsed()) == 1);
            assert!(Some(token) > last, "{token:?} after {last:?}");
            let now = nodes[2].now();
            assert!(token.get() >= now - 20_000 && token.get() <= now + 1_000_000);
            last = Some(token);
            give_back(&quorum, &target, &owner).await;
        }
        if follows {
            assert!(agreed >= 38, "{agreed} of 40");
        } else {
            assert_eq!(agreed, 0);
            // Proposals stay with the clocks of the others.
            let floors = nodes[0].floors.lock().unwrap();
            let behind = |floor: &&Option<FencingToken>| {
                floor.is_some_and(|floor| floor.get() <= nodes[0].now() + 1_000_000)
            };
            assert!(floors.iter().filter(behind).count() > 40);
        }
    }
}

/// The nodes' clocks are an hour behind the client's, so the client's looks an hour ahead. Tokens
/// stay with the nodes.
#[tokio::test(start_paused = true)]
async fn a_client_whose_clock_is_far_ahead_proposes_nothing() {
    let nodes = nodes([-HOUR, -HOUR + 40, -HOUR + 90, -HOUR + 170, -HOUR + 300]);
    let quorum = quorum(&nodes);
    let mut last = None;
    for _ in 0..50 {
        let (token, _, _) = pair(&quorum, &nodes).await;
        assert!(Some(token) > last);
        let newest = nodes.iter().map(Clocked::now).max().unwrap();
        assert!(token.get() <= newest + 1, "{token:?} is not of the nodes");
        last = Some(token);
    }
    // Requests that write a token back do have floors.
    let floors: Vec<_> = nodes[0].floors.lock().unwrap().clone();
    let newest = nodes.iter().map(Clocked::now).max().unwrap();
    assert!(floors.iter().flatten().all(|f| f.get() <= newest));
    assert!(floors.iter().filter(|floor| floor.is_none()).count() >= 50);
}

#[tokio::test(start_paused = true)]
async fn a_repetition_keeps_its_token_and_the_next_owner_has_a_larger_one() {
    let nodes = nodes([0, 7, 13, 211, 499]);
    let quorum = quorum(&nodes);
    for round in 0..20 {
        let (target, owner) = (mutex("job"), OwnerId::generate());
        let first = take(&quorum, &target, &owner).await;
        sleep(Duration::from_millis(round * 3)).await;
        assert_eq!(take(&quorum, &target, &owner).await, first);
        let floor = *nodes[0].floors.lock().unwrap().last().unwrap();
        assert_eq!(floor, Some(first), "nodes that lost it are told which");
        give_back(&quorum, &target, &owner).await;
        let next = OwnerId::generate();
        assert!(take(&quorum, &target, &next).await > first);
        give_back(&quorum, &target, &next).await;
    }
}

/// A node gives each token to one grant, even if it is proposed repeatedly.
#[tokio::test(start_paused = true)]
async fn the_same_proposal_twice_is_two_tokens() {
    let node = MemoryBackend::new();
    let target = mutex("job");
    let proposed = FencingToken::new(u64::try_from(HOUR).unwrap() * 24 * 365 * 60);
    let mut last = None;
    for _ in 0..5 {
        let owner = OwnerId::generate();
        let attempt = AcquireAttempt {
            floor: proposed,
            ..attempt(&target, &owner)
        };
        let AttemptOutcome::Granted { token } = node.attempt(&attempt).await.unwrap() else {
            panic!("it is free");
        };
        assert!(token >= proposed && token > last);
        last = token;
        let release = ReleaseRequest::new(target.clone(), owner, attempt.deadline);
        let _ = node.release(&release).await.unwrap();
    }
}

/// Clients with equal proposals over different majorities: tokens grow, and no two grants share
/// one.
#[tokio::test(start_paused = true)]
async fn tokens_grow_over_clients_and_majorities() {
    let nodes = nodes([0, 30_000, -5_000, 200, 2_000_000]);
    let clients = [quorum(&nodes), quorum(&nodes), quorum(&nodes)];
    let mut last = None;
    for round in 0..60 {
        let down = [round % NODES, (round * 2 + 1) % NODES];
        for (index, node) in nodes.iter().enumerate() {
            node.go_away(down.contains(&index));
        }
        let (target, owner) = (mutex("job"), OwnerId::generate());
        let client = &clients[round % clients.len()];
        let token = take(client, &target, &owner).await;
        assert!(
            Some(token) > last,
            "round {round}: {token:?} after {last:?}"
        );
        last = Some(token);
        give_back(client, &target, &owner).await;
        until("given back", || {
            let free = nodes.iter().filter(|node| node.store.population().0 == 0);
            free.count() >= MAJORITY && client.background_tasks() == 0
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn kinds_without_tokens_are_sent_no_proposal() {
    let nodes = nodes([0; NODES]);
    let quorum = quorum(&nodes);
    for _ in 0..3 {
        let with = OwnerId::generate();
        take(&quorum, &mutex("job"), &with).await;
        give_back(&quorum, &mutex("job"), &with).await;
    }
    nodes[0].floors.lock().unwrap().clear();
    let single = LockKind::Mutex(Arc::new(MutexProfile::single_key()));
    let target = LockTarget::new(mutex("single").name().clone(), single);
    let owner = OwnerId::generate();
    let granted = quorum.attempt(&attempt(&target, &owner)).await.unwrap();
    assert_eq!(granted, AttemptOutcome::Granted { token: None });
    assert_eq!(*nodes[0].floors.lock().unwrap(), [None]);
}
