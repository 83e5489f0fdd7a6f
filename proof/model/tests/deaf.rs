//! Deaf waiters in any number, as a killed process leaves them. A few scripts pass over them all,
//! and then serve the live waiters behind them at once. A process that lost its connection for a
//! moment finds its places unchanged.
#![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "precise_common/mod.rs"]
mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{is_granted, kinds};
use locktopus_core::{
    AcquireAttempt, AttemptOutcome, CounterAction, CounterRequest, Counters as _, LockBackend as _,
    LockGuard, LockKind, LockName, LockRequest, LockState, LockTarget, Locktopus, OwnerId,
    PlaceHint, ReleaseOutcome, ReleaseRequest, WaitStrategy, WakeStream, WakeUps as _, WriteGuard,
};
use locktopus_model::ModelClient;
use locktopus_protocol::{
    BackendOptions, ClientError, Keys, RedisBackend, RedisClient as _, Reply, Route,
};
use locktopus_servers::peers::redisson_scripts::{fair_lock, fair_unlock};
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);
/// Longer than any test, so that no waiter polls and no place expires meanwhile.
const LONG: Duration = Duration::from_secs(90);
const LEASE: Duration = Duration::from_secs(90 * 12);
const PATIENT: WaitStrategy = WaitStrategy::HandOff {
    heartbeat: LONG,
    confirm: false,
};
/// How many deaf waiters one script sets aside, and how many commands that takes at most.
const OF_A_SCRIPT: usize = 1_024;
const COMMANDS: usize = 2 * OF_A_SCRIPT + 400;
const PERMITS: u32 = 3;

/// The kind of a holder that excludes all others.
fn holding(kind: &LockKind) -> LockKind {
    match kind {
        LockKind::Read => LockKind::Write,
        kind => kind.clone(),
    }
}

fn is_counted(kind: &LockKind) -> bool {
    matches!(kind, LockKind::Semaphore | LockKind::PermitSemaphore)
}

fn target(name: &str, kind: &LockKind) -> LockTarget {
    LockTarget::new(LockName::new(name).unwrap(), kind.clone())
}

/// A user's request. The guard of a writer has its own type.
enum Request {
    Any(LockRequest),
    Write(LockRequest<WriteGuard>),
}

impl Request {
    fn new(locks: &Locktopus, name: &str, kind: &LockKind) -> Self {
        let request = match kind {
            LockKind::Reentrant => locks.lock(name),
            LockKind::Mutex(_) => locks.mutex(name),
            LockKind::Fair => locks.fair_lock(name),
            LockKind::Read => locks.rw_lock(name).read(),
            LockKind::Write => {
                let request = locks.rw_lock(name).write();
                return Self::Write(request.strategy(PATIENT).fixed_lease(LEASE));
            }
            LockKind::Semaphore => locks.semaphore(name).permits(1),
            _ => locks.permit_semaphore(name).permits(1),
        };
        Self::Any(request.strategy(PATIENT).fixed_lease(LEASE))
    }

    async fn acquire(self) -> LockGuard {
        match self {
            Self::Any(request) => request.acquire().await.unwrap(),
            Self::Write(request) => request.acquire().await.unwrap().into(),
        }
    }

    async fn try_acquire(self) -> Option<LockGuard> {
        match self {
            Self::Any(request) => request.try_acquire().await.unwrap(),
            Self::Write(request) => request.try_acquire().await.unwrap().map(Into::into),
        }
    }
}

/// One process, as the server sees it.
#[derive(Clone)]
struct Process {
    client: Arc<ModelClient>,
    backend: Arc<RedisBackend>,
}

impl Process {
    async fn first() -> Self {
        Self::of(ModelClient::timed()).await
    }

    async fn another(&self) -> Self {
        Self::of(self.client.another()).await
    }

    async fn of(client: ModelClient) -> Self {
        let client = Arc::new(client);
        let options = BackendOptions::default();
        let backend = RedisBackend::new(Arc::clone(&client) as _, options).await;
        let backend = Arc::new(backend.unwrap());
        Self { client, backend }
    }

    fn locks(&self) -> Locktopus {
        Locktopus::builder_dyn(Arc::clone(&self.backend) as _)
            .build()
            .unwrap()
    }

    async fn attempt(&self, target: &LockTarget, owner: &OwnerId, permits: u32) -> AttemptOutcome {
        let counted = is_counted(target.kind());
        let permits = if counted { permits } else { 1 };
        self.look(target, owner, permits, None).await
    }

    /// Takes the whole lock.
    async fn hold(&self, name: &str, kind: &LockKind) -> (LockTarget, OwnerId) {
        let target = target(name, &holding(kind));
        if is_counted(kind) {
            let request = CounterRequest {
                target: target.clone(),
                operation: OwnerId::generate(),
                action: CounterAction::Initialise(PERMITS.into()),
                deadline: Instant::now() + SECOND,
            };
            let _ = self.backend.counter(&request).await.unwrap();
        }
        let owner = target.kind().new_owner();
        let granted = self.attempt(&target, &owner, PERMITS).await;
        assert!(is_granted(&granted));
        (target, owner)
    }

    async fn release(&self, (target, owner): &(LockTarget, OwnerId), permits: u32) {
        let counted = is_counted(target.kind());
        let deadline = Instant::now() + SECOND;
        let request = ReleaseRequest {
            permits: if counted { permits } else { 1 },
            ..ReleaseRequest::new(target.clone(), owner.clone(), deadline)
        };
        let released = self.backend.release(&request).await.unwrap();
        assert_eq!(released, ReleaseOutcome::Released);
    }

    /// Queues, or polls again.
    async fn look(
        &self,
        target: &LockTarget,
        owner: &OwnerId,
        permits: u32,
        place: impl Into<Option<Duration>>,
    ) -> AttemptOutcome {
        let deadline = Instant::now() + SECOND;
        let attempt = AcquireAttempt {
            permits,
            place: place.into(),
            ..AcquireAttempt::new(target.clone(), owner.clone(), LEASE, deadline)
        };
        self.backend.attempt(&attempt).await.unwrap()
    }

    /// Queues.
    async fn wait(&self, target: &LockTarget, permits: u32, place: Duration) -> OwnerId {
        let owner = target.kind().new_owner();
        let queued = self.look(target, &owner, permits, place).await;
        let in_line = matches!(queued, AttemptOutcome::Queued { .. });
        assert!(in_line, "{queued:?}");
        owner
    }

    /// Leaves the line, as a dropped acquisition does.
    async fn give_up(&self, target: &LockTarget, owner: &OwnerId) {
        let deadline = Instant::now() + SECOND;
        let attempt = AcquireAttempt::new(target.clone(), owner.clone(), LEASE, deadline);
        let request = ReleaseRequest {
            place_hint: Some(PlaceHint {
                place: LONG,
                lease: LEASE,
                tokens: attempt.tokens,
            }),
            ..ReleaseRequest::new(target.clone(), owner.clone(), deadline)
        };
        let released = self.backend.release(&request).await.unwrap();
        assert_eq!(released, ReleaseOutcome::NotHeld);
    }

    async fn listen(&self, target: &LockTarget) -> WakeStream {
        let deadline = Instant::now() + SECOND;
        self.backend.subscribe(target, deadline).await.unwrap()
    }

    /// The server refuses its subscriptions, and it learns that from one.
    async fn may_not_listen(&self, target: &LockTarget) {
        let refusal = ClientError::rejected("NOPERM no right to 'subscribe'");
        *self.client.refused.lock().unwrap() = Some(refusal);
        let deadline = Instant::now() + SECOND;
        assert!(self.backend.subscribe(target, deadline).await.is_err());
    }

    /// A thread of Redisson asks for a fair lock, and gets nil or how long to sleep. Or it leaves.
    async fn redisson(&self, it: &LockTarget, thread: u32, leaves: bool) -> Option<Duration> {
        let (now, keys) = (self.client.server().clock / 1_000, Keys::of(it).names);
        let thread = format!("71b96ce8-2746-4c1a-9b6e-0d2c1f0a9d11:{thread}");
        let (lock, queue, deadlines) = (&keys[0], &keys[2], &keys[4]);
        let (script, words) = match leaves {
            true => (
                fair_unlock(),
                format!("4 {lock} {queue} {deadlines} channel 0 30000 {thread} PUBLISH {now}"),
            ),
            false => (
                fair_lock(),
                format!("3 {lock} {queue} {deadlines} 30000 {thread} 300000 {now}"),
            ),
        };
        let words: Vec<_> = ["EVAL", &script]
            .into_iter()
            .chain(words.split(' '))
            .map(str::as_bytes)
            .collect();
        match self.client.command(Route::Any, &words).await.unwrap() {
            Reply::Int(pause) => Some(Duration::from_millis(pause.try_into().unwrap())),
            _ => None,
        }
    }

    fn count(&self, command: &str, target: &LockTarget, key: usize) -> usize {
        let key = Keys::of(target).names[key].clone();
        let words = [command, &key].map(|word| word.as_bytes().to_vec());
        let reply = self.client.server().command(&words).unwrap();
        usize::try_from(reply.as_int().unwrap()).unwrap()
    }

    /// The length of the line.
    fn in_line(&self, target: &LockTarget) -> usize {
        let fair = *target.kind() == LockKind::Fair;
        self.count(if fair { "LLEN" } else { "ZCARD" }, target, 2)
    }

    async fn waiters(&self, target: &LockTarget) -> Vec<OwnerId> {
        let waiters = self.state(target).await.waiters.into_iter();
        waiters.map(|waiter| waiter.owner).collect()
    }

    async fn state(&self, target: &LockTarget) -> LockState {
        let deadline = Instant::now() + SECOND;
        self.backend.inspect(target, deadline).await.unwrap()
    }
}

/// A release serves the waiter behind so many deaf ones, although that one does not poll.
async fn is_served(here: &Process, dead: &[Process], kind: &LockKind, many: usize) {
    let name = format!("{}-{:?}-{many}-{}", kind.as_str(), kind.mode(), dead.len());
    let what = format!("{} behind {many} of {}", kind.as_str(), dead.len());
    let held = here.hold(&name, kind).await;
    let waits_for = target(&name, kind);
    for at in 0..many {
        dead[at % dead.len()].wait(&waits_for, 1, LONG * 10).await;
    }
    let [living, third] = [here.another().await.locks(), here.another().await.locks()];
    let waiting = tokio::spawn(Request::new(&living, &name, kind).acquire());
    // It subscribes and polls.
    tokio::time::sleep(SECOND).await;
    assert_eq!(here.in_line(&waits_for), many + 1, "{what}");
    let _ = here.client.take_runs();
    let begun = Instant::now();
    here.release(&held, PERMITS).await;
    let served = tokio::time::timeout(LONG / 2, waiting).await;
    let guard = served
        .unwrap_or_else(|_| panic!("{what}: waits although it is free"))
        .unwrap();
    let took = begun.elapsed();
    tokio::time::sleep(SECOND * 5).await;
    let runs = here.client.take_runs();
    assert!(took < SECOND / 10, "{what}: after {took:?}");
    assert!(runs.len() <= 2 + many / OF_A_SCRIPT, "{what}: {runs:?}");
    assert!(runs.iter().max() < Some(&COMMANDS), "{what}: {runs:?}");

    // The scripts have passed over the dead for all later requests too.
    guard.release().await.unwrap();
    let _ = here.client.take_runs();
    let guard = Request::new(&third, &name, kind).try_acquire().await;
    let guard = guard.unwrap_or_else(|| panic!("{what}: nobody holds it"));
    let runs = here.client.take_runs();
    assert!(runs.len() == 1 && runs[0] < 50, "{what}: {runs:?}");
    guard.release().await.unwrap();
    for locks in [living, third] {
        let _ = locks.shutdown(SECOND).await;
    }
}

#[tokio::test(start_paused = true)]
async fn any_number_of_deaf_waiters_is_passed_at_once() {
    let here = Process::first().await;
    let mut dead = Vec::new();
    for _ in 0..2_000 {
        dead.push(here.another().await);
    }
    for kind in kinds() {
        for many in [0, 1, 63, 64, 65, 1_024, 1_025, 2_000] {
            is_served(&here, &dead[..1], &kind, many).await;
        }
        for many in [65, 2_000] {
            is_served(&here, &dead[..many], &kind, many).await;
        }
    }
}

/// A holder died without a release. `try_acquire` finds the lock free behind the deaf.
#[tokio::test(start_paused = true)]
async fn what_ended_by_itself_can_be_tried_for_behind_the_deaf() {
    for kind in kinds() {
        for (many, tries) in [(1, 1), (64, 1), (65, 1), (1_000, 1), (2_000, 2)] {
            let here = Process::first().await;
            let dead = here.another().await;
            here.hold("left", &kind).await;
            let target = target("left", &kind);
            for _ in 0..many {
                dead.wait(&target, 1, LEASE * 2).await;
            }
            tokio::time::sleep(LEASE + SECOND).await;
            let locks = here.another().await.locks();
            for attempt in 1..=tries {
                let tried = Request::new(&locks, "left", &kind).try_acquire().await;
                let what = format!("{kind:?} behind {many}, try {attempt}");
                assert_eq!(tried.is_some(), attempt == tries, "{what}");
            }
        }
    }
}

/// The same for several locks at once.
#[tokio::test(start_paused = true)]
async fn a_group_is_taken_behind_the_deaf() {
    let here = Process::first().await;
    let dead = here.another().await;
    for name in ["{g}:1", "{g}:2"] {
        here.hold(name, &LockKind::Reentrant).await;
        for _ in 0..70 {
            dead.wait(&target(name, &LockKind::Reentrant), 1, LEASE * 2)
                .await;
        }
    }
    tokio::time::sleep(LEASE + SECOND).await;
    let locks = here.locks();
    let both = locks.multi(["{g}:1", "{g}:2"]).try_acquire().await.unwrap();
    assert!(both.is_some());
}

/// A deaf waiter that wants more than is free, or wants it alone, does not block others.
#[tokio::test(start_paused = true)]
async fn a_deaf_waiter_that_does_not_fit_keeps_nobody_out() {
    for (kind, big, wants) in [
        (LockKind::Semaphore, LockKind::Semaphore, PERMITS),
        (
            LockKind::PermitSemaphore,
            LockKind::PermitSemaphore,
            PERMITS,
        ),
        (LockKind::Read, LockKind::Write, 1),
    ] {
        let here = Process::first().await;
        let (dead, locks) = (here.another().await, here.another().await.locks());
        let held = here.hold("some", &kind).await;
        here.release(&held, PERMITS).await;
        let (small, big) = (target("some", &kind), target("some", &big));
        // One waiter holds a part, and there is room for more.
        let holder = small.kind().new_owner();
        let _ = here.attempt(&small, &holder, 1).await;
        dead.wait(&big, wants, LONG * 10).await;
        let begun = Instant::now();
        let guard = Request::new(&locks, "some", &kind).acquire().await;
        let took = begun.elapsed();
        assert!(took < SECOND / 10, "{kind:?}: {took:?}");

        // The same if it dies while another one waits behind it.
        let dying = here.another().await;
        let _heard = dying.listen(&big).await;
        dying.wait(&big, wants, LONG * 10).await;
        let waiting = tokio::spawn(Request::new(&locks, "some", &kind).acquire());
        tokio::time::sleep(SECOND).await;
        assert!(!waiting.is_finished(), "{kind:?}: it overtook a living one");
        dying.client.close().await;
        let begun = Instant::now();
        guard.release().await.unwrap();
        waiting.await.unwrap().release().await.unwrap();
        let took = begun.elapsed();
        assert!(took < SECOND / 10, "{kind:?}: {took:?}");
    }
}

/// A waiter that was set aside is back at its place as soon as it asks again.
#[tokio::test(start_paused = true)]
async fn whoever_was_cut_off_for_a_moment_has_its_place() {
    for kind in kinds().iter().map(holding) {
        for many in [1, 2, 70, 130] {
            let here = Process::first().await;
            let (cut, next) = (here.another().await, here.another().await);
            let held = here.hold("it", &kind).await;
            let it = held.0.clone();
            let mut line = Vec::new();
            for _ in 0..many {
                line.push(cut.wait(&it, PERMITS, LONG * 10).await);
            }
            let _heard = next.listen(&it).await;
            let second = next.wait(&it, PERMITS, LONG * 10).await;
            let last = next.wait(&it, PERMITS, LONG * 10).await;
            here.release(&held, PERMITS).await;
            // They were passed over, and all of them are still there.
            let state = here.state(&it).await;
            assert_eq!(state.holders[0].owner, second, "{kind:?} {many}");
            assert_eq!(state.waiters.len(), many + 1, "{kind:?} {many}");
            // They listen again, and ask in any order.
            let _heard_again = cut.listen(&it).await;
            for owner in line.iter().rev() {
                let queued = cut.look(&it, owner, PERMITS, LONG * 10).await;
                let ahead = matches!(queued, AttemptOutcome::Queued { ahead: 0, .. });
                assert!(ahead, "{kind:?} {many}: {queued:?}");
            }
            let mut expected = line.clone();
            expected.push(last);
            assert_eq!(here.waiters(&it).await, expected, "{kind:?} {many}");
            next.release(&(it.clone(), second), PERMITS).await;
            let state = here.state(&it).await;
            assert_eq!(state.holders[0].owner, line[0], "{kind:?} {many}");
        }
    }
}

/// A waiter that was set aside and finds the lock free gets it before later ones.
#[tokio::test(start_paused = true)]
async fn whoever_was_cut_off_takes_what_is_free() {
    let place = LEASE * 4;
    for kind in kinds().iter().map(holding) {
        let here = Process::first().await;
        let (cut, next) = (here.another().await, here.another().await);
        let held = here.hold("it", &kind).await;
        let it = held.0.clone();
        let first = cut.wait(&it, PERMITS, place).await;
        here.release(&held, PERMITS).await;
        let other = it.kind().new_owner();
        let taken = here.attempt(&it, &other, PERMITS).await;
        assert!(is_granted(&taken), "{kind:?}");
        let _heard = next.listen(&it).await;
        let second = next.wait(&it, PERMITS, place).await;
        tokio::time::sleep(LEASE + SECOND).await;
        let looked = cut.look(&it, &first, PERMITS, place).await;
        assert!(is_granted(&looked), "{kind:?}: {looked:?}");
        assert_eq!(here.waiters(&it).await, [second], "{kind:?}");
    }
}

/// Waiters that never come back are removed, even if the line is never empty.
#[tokio::test(start_paused = true)]
async fn the_dead_do_not_pile_up_behind_the_line() {
    for kind in kinds().iter().map(holding) {
        let here = Process::first().await;
        let (dead, next) = (here.another().await, here.another().await);
        let mut held = here.hold("it", &kind).await;
        let it = held.0.clone();
        let _heard = next.listen(&it).await;
        let mut most = 0;
        for _ in 0..20 {
            for _ in 0..50 {
                dead.wait(&it, PERMITS, SECOND * 4).await;
            }
            let owner = next.wait(&it, PERMITS, LONG * 100).await;
            let other = next.wait(&it, PERMITS, LONG * 100).await;
            here.release(&held, PERMITS).await;
            let fair = *it.kind() == LockKind::Fair;
            most = most.max(here.count("ZCARD", &it, if fair { 4 } else { 2 }));
            here.release(&(it.clone(), owner), PERMITS).await;
            held = (it.clone(), other);
            tokio::time::sleep(SECOND * 5).await;
        }
        assert!(most < 200, "{kind:?}: {most}");
        here.release(&held, PERMITS).await;
        // The next holders find no waiters and leave nothing behind.
        for _ in 0..4 {
            let owner = it.kind().new_owner();
            let _ = here.attempt(&it, &owner, PERMITS).await;
            here.release(&(it.clone(), owner), PERMITS).await;
        }
        for place in 2..4 + usize::from(*it.kind() == LockKind::Fair) {
            let left = here.count("EXISTS", &it, place);
            assert_eq!(left, 0, "{kind:?}: key {place}");
        }
    }
}

/// A waiter that loses or regains the right to subscribe while it queues has one place.
#[tokio::test(start_paused = true)]
async fn whoever_may_not_listen_any_more_has_one_place() {
    let flips = [&[true][..], &[true, false]];
    let kinds = kinds().into_iter();
    for (ref kind, flips) in kinds.flat_map(|kind| flips.map(|flips| (kind.clone(), flips))) {
        let here = Process::first().await;
        let (polls, next) = (here.another().await, here.another().await);
        let held = here.hold("it", &holding(kind)).await;
        let it = target("it", kind);
        let first = polls.wait(&it, 1, LONG).await;
        let _heard = next.listen(&it).await;
        let second = next.wait(&it, 1, LONG).await;
        let mut given_up = polls.wait(&it, 1, LONG).await;
        let mut streams = Vec::new();
        for refused in flips {
            match refused {
                true => polls.may_not_listen(&it).await,
                false => {
                    *polls.client.refused.lock().unwrap() = None;
                    streams.push(polls.listen(&it).await);
                }
            }
            let looked = polls.look(&it, &first, 1, LONG).await;
            let ahead = matches!(looked, AttemptOutcome::Queued { ahead: 0, .. });
            assert!(ahead, "{kind:?} {refused}: {looked:?}");
            // It has not asked again since it queued.
            polls.give_up(&it, &given_up).await;
            let line = [first.clone(), second.clone()];
            assert_eq!(here.waiters(&it).await, line, "{kind:?} {refused}");
            given_up = polls.wait(&it, 1, LONG).await;
            tokio::time::sleep(SECOND * 2).await;
        }
        polls.give_up(&it, &given_up).await;
        here.release(&held, PERMITS).await;
        let looked = polls.look(&it, &first, 1, LONG).await;
        assert!(is_granted(&looked), "{kind:?} {flips:?}: {looked:?}");
        here.release(&(it.clone(), first), 1).await;
        assert_eq!(here.state(&it).await.holders[0].owner, second, "{kind:?}");
        assert_eq!(here.in_line(&it), 0, "{kind:?}");
    }
}

/// Room is kept for waiters that poll. The ones behind them get only what is left.
#[tokio::test(start_paused = true)]
async fn room_is_kept_for_those_that_poll() {
    for (case, kind) in (0..216).flat_map(|case| {
        [
            LockKind::Read,
            LockKind::Semaphore,
            LockKind::PermitSemaphore,
        ]
        .map(|kind| (case, kind))
    }) {
        let here = Process::first().await;
        let (polls, next) = (here.another().await, here.another().await);
        let held = here.hold("it", &kind).await;
        polls.may_not_listen(&held.0).await;
        let _heard = next.listen(&held.0).await;
        // Three waiters want one to three permits each, or to read or write.
        let (mut room, mut line) = (if is_counted(&kind) { PERMITS } else { 4 }, Vec::new());
        for (at, wants) in [case / 8 % 3, case / 24 % 3, case / 72]
            .into_iter()
            .enumerate()
        {
            let (it, permits, takes) = match wants {
                wants if is_counted(&kind) => (target("it", &kind), wants + 1, wants + 1),
                2 => (held.0.clone(), 1, 4),
                _ => (target("it", &kind), 1, 1),
            };
            let process = if case >> at & 1 == 1 { &polls } else { &next };
            let owner = process.wait(&it, permits, LONG * 10).await;
            let fits = room >= takes;
            room = if fits { room - takes } else { 0 };
            line.push((process, it, permits, owner, fits));
        }
        here.release(&held, PERMITS).await;
        let what = format!("{kind:?}, case {case}");
        let holders = here.state(&held.0).await.holders;
        for (process, .., owner, fits) in &line {
            let holds = holders.iter().any(|holder| holder.owner == *owner);
            let heard = *fits && std::ptr::eq(*process, &raw const next);
            assert_eq!(holds, heard, "{what}");
        }
        // A newcomer gets what is left, and the polling waiters get what was kept.
        let small = target("it", &kind);
        let tried = here.attempt(&small, &kind.new_owner(), 1).await;
        assert_eq!(is_granted(&tried), room > 0, "{what}: {tried:?}");
        for (process, it, permits, owner, fits) in line.iter().rev() {
            let looked = process.look(it, owner, *permits, LONG * 10).await;
            assert_eq!(is_granted(&looked), *fits, "{what}: {looked:?}");
        }
    }
}

/// Redisson's waiters do not overtake ours that poll, and pass our dead ones as soon as ours do.
#[tokio::test(start_paused = true)]
async fn redissons_waiters_pass_whoever_polled_and_died_and_no_other() {
    for (theirs, ours) in [(0, 1), (0, 3), (1, 1), (3, 2), (70, 1)] {
        let (kind, place, what) = (LockKind::Fair, SECOND * 5, format!("{theirs}, {ours}"));
        let here = Process::first().await;
        let polls = here.another().await;
        let held = here.hold("it", &kind).await;
        let it = &held.0;
        polls.may_not_listen(it).await;
        for thread in 1..=theirs {
            here.redisson(it, thread, false).await.unwrap();
        }
        let mut line = Vec::new();
        for _ in 0..ours {
            line.push(polls.wait(it, 1, place).await);
        }
        tokio::time::sleep(SECOND).await;
        for owner in &line {
            let _ = polls.look(it, owner, 1, place).await;
        }
        // Redisson subtracts 300 s from all deadlines with each of its grants.
        let sleeps = here.redisson(it, 99, false).await.unwrap();
        assert!(
            sleeps <= place + SECOND * 300 * theirs,
            "{what}: {sleeps:?}"
        );
        here.release(&held, 1).await;
        let begun = Instant::now();
        for thread in 1..=theirs {
            assert_eq!(here.redisson(it, thread, false).await, None, "{what}");
            here.redisson(it, thread, true).await.unwrap();
        }
        while begun.elapsed() < place * 3 && here.redisson(it, 99, false).await.is_some() {
            tokio::time::sleep(SECOND / 10).await;
        }
        let took = begun.elapsed();
        assert!(
            took > place / 2 && took < place + SECOND,
            "{what}: {took:?}"
        );
    }
}
