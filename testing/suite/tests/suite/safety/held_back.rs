//! Every script that could grant something, during a quarantine.

use std::sync::Arc;
use std::time::Duration;

use locktopus::{
    AcquireAttempt, AttemptOutcome, CounterAction, CounterOutcome, CounterRequest, DynBackend,
    GroupOutcome, LockKind, LockName, LockTarget, Mode, MutexProfile, OwnerId, ReleaseOutcome,
    ReleaseRequest, WakeStream,
};
use locktopus_protocol::scripts;
use locktopus_servers::topology::Deployment;
use tokio::time::Instant;

use crate::common::raw::Raw;
use crate::common::{SOON, unique, url_for};
use crate::safety::quarantine::vouch;

const LEASE: Duration = Duration::from_secs(30);

const MORE_PERMITS: [CounterAction; 3] = [
    CounterAction::Initialise(2),
    CounterAction::Resize(2),
    CounterAction::Add(2),
];

/// The period is as long as the lease of an attempt.
fn rate(permits: u64) -> CounterAction {
    CounterAction::Rate {
        permits,
        per: LEASE,
        keep: false,
    }
}

/// Scripts that grant nothing, even if the server has forgotten grants: they extend holds, read,
/// write guarded keys, or count for waiters of a number.
const GIVE_NOTHING: [&str; 9] = [
    "_extend",
    "_linger",
    "_inspect",
    "_read",
    "guarded_write",
    "classify",
    "wait_offset",
    "latch",
    "keep_tokens",
];

/// Two clients of a server whose quarantine outlasts the test: one without that safety mode, and
/// one with it.
struct Held {
    before: DynBackend,
    guarded: DynBackend,
}

pub(crate) async fn by_every_script(place: Arc<Deployment>) -> String {
    let url = format!("{}&timeout=5s", url_for(&place, "redis"));
    let guarded = format!("{url}&safety=quarantine&quarantine_max_lease=30s");
    let held = Held {
        before: locktopus::connect_backend(&url).await.unwrap(),
        guarded: locktopus::connect_backend(&guarded).await.unwrap(),
    };
    let mutex = |profile| LockKind::Mutex(Arc::new(profile));
    for kind in [
        LockKind::Reentrant,
        LockKind::Mutex(Arc::default()),
        mutex(MutexProfile::redis_py()),
        mutex(MutexProfile::python_redis_lock()),
        LockKind::Fair,
        LockKind::Read,
        LockKind::Write,
        LockKind::Semaphore,
        LockKind::PermitSemaphore,
        LockKind::RateLimiter,
    ] {
        held.what_is_free(&kind).await;
        held.what_becomes_free(&kind).await;
    }
    held.together().await;
    held.numbers(&LockKind::RateLimiter, &[rate(2)]).await;
    let mut drained = Vec::new();
    for kind in [LockKind::Semaphore, LockKind::PermitSemaphore] {
        held.numbers(&kind, &MORE_PERMITS).await;
        drained.push(held.drained(&kind).await);
    }

    every_script_was_tried(&place).await;
    // Draining must work afterwards, or the refusals would not prove a quarantine.
    vouch(&place, LEASE).await;
    for semaphore in drained {
        let taken = held
            .count(&held.guarded, &semaphore, CounterAction::Drain)
            .await;
        assert_eq!((taken.value, taken.changed), (Some(3), true));
    }
    held.before.close().await;
    held.guarded.close().await;
    "nothing was given".to_owned()
}

/// Every script that hands something on has a quarantined version, and the server knows it by now.
async fn every_script_was_tried(place: &Deployment) {
    let mut raw = Raw::to(&place.nodes()[0]).await;
    // Calls are sent together only without a quarantine.
    for script in scripts::all().filter(|script| !script.name.ends_with("_together")) {
        let known = raw.say(&["SCRIPT", "EXISTS", script.digest()]).await;
        let tried = known.list()[0].int() == 1;
        let guarded = script.name.starts_with("quarantined_");
        let twin = format!("quarantined_{}", script.name);
        if GIVE_NOTHING.iter().any(|end| script.name.ends_with(end)) {
            continue;
        }
        assert!(tried || !guarded, "{} was not tried", script.name);
        let has_twin = scripts::all().any(|other| other.name == twin);
        assert!(guarded || has_twin, "{} is not held back", script.name);
    }
}

impl Held {
    fn target(kind: &LockKind, what: &str) -> LockTarget {
        LockTarget::new(LockName::new(unique(what)).unwrap(), kind.clone())
    }

    async fn attempt(backend: &DynBackend, target: &LockTarget, owner: &OwnerId) -> AttemptOutcome {
        let deadline = Instant::now() + SOON;
        let attempt = AcquireAttempt {
            place: target.kind().hands_off().then_some(LEASE),
            ..AcquireAttempt::new(target.clone(), owner.clone(), LEASE, deadline)
        };
        backend.attempt(&attempt).await.unwrap()
    }

    async fn count(
        &self,
        backend: &DynBackend,
        target: &LockTarget,
        action: CounterAction,
    ) -> CounterOutcome {
        let request = CounterRequest {
            target: target.clone(),
            operation: OwnerId::generate(),
            action,
            deadline: Instant::now() + SOON,
        };
        backend.counter(&request).await.unwrap()
    }

    async fn initialise(&self, target: &LockTarget, permits: u64) {
        let action = match target.kind() {
            LockKind::RateLimiter => rate(permits),
            _ => CounterAction::Initialise(permits),
        };
        assert!(self.count(&self.before, target, action).await.changed);
    }

    fn is_counted(kind: &LockKind) -> bool {
        kind.mode() == Mode::Permits
    }

    /// A waiter under the rules of the quarantine, which listens if it can be notified.
    async fn waiter(&self, target: &LockTarget) -> (OwnerId, Option<WakeStream>) {
        let owner = target.kind().new_owner();
        let listens = match target.kind().hands_off() {
            true => Some(
                self.guarded
                    .subscribe(target, Instant::now() + SOON)
                    .await
                    .unwrap(),
            ),
            false => None,
        };
        let outcome = Self::attempt(&self.guarded, target, &owner).await;
        assert!(!granted(&outcome), "{target} was granted: {outcome:?}");
        (owner, listens)
    }

    async fn nobody_holds(&self, target: &LockTarget, what: &str) {
        let state = self
            .guarded
            .inspect(target, Instant::now() + SOON)
            .await
            .unwrap();
        assert!(state.holders.is_empty(), "{target} after {what}: {state:?}");
    }

    async fn what_is_free(&self, kind: &LockKind) {
        let target = Self::target(kind, "free");
        if Self::is_counted(kind) {
            self.initialise(&target, 3).await;
        }
        let _waiter = self.waiter(&target).await;
        self.nobody_holds(&target, "an attempt").await;
    }

    async fn what_becomes_free(&self, kind: &LockKind) {
        for evicted in [false, true] {
            let target = Self::target(kind, "freed");
            if Self::is_counted(kind) {
                self.initialise(&target, 1).await;
            }
            let holder = kind.new_owner();
            let outcome = Self::attempt(&self.before, &target, &holder).await;
            assert!(granted(&outcome), "{target}: {outcome:?}");
            let _waiter = self.waiter(&target).await;
            let deadline = Instant::now() + SOON;
            if evicted {
                let eviction = self.guarded.evict(&target, deadline).await.unwrap();
                assert_eq!(eviction.evicted.len(), 1, "{target}");
                self.nobody_holds(&target, "an eviction").await;
            } else {
                let request = ReleaseRequest::new(target.clone(), holder, deadline);
                let outcome = self.guarded.release(&request).await.unwrap();
                assert_eq!(outcome, ReleaseOutcome::Released, "{target}");
                self.nobody_holds(&target, "a release").await;
            }
        }
    }

    async fn together(&self) {
        let kinds = [LockKind::Reentrant, LockKind::Mutex(Arc::default())];
        let deadline = Instant::now() + SOON;
        let attempts = kinds.map(|kind| {
            let target = Self::target(&kind, "together");
            AcquireAttempt::new(target, kind.new_owner(), LEASE, deadline)
        });
        let outcome = self.guarded.attempt_all(&attempts).await.unwrap();
        assert!(matches!(outcome, GroupOutcome::Busy { .. }), "{outcome:?}");
        for attempt in &attempts {
            self.nobody_holds(&attempt.target, "an attempt at several")
                .await;
        }
    }

    /// Added permits are not handed to waiters.
    async fn numbers(&self, kind: &LockKind, more: &[CounterAction]) {
        for action in more.iter().copied() {
            let target = Self::target(kind, "number");
            if matches!(action, CounterAction::Rate { .. }) {
                self.initialise(&target, 1).await;
                let taken = Self::attempt(&self.before, &target, &kind.new_owner()).await;
                assert!(granted(&taken), "{target}: {taken:?}");
            } else {
                self.initialise(&target, 2).await;
                let _ = self
                    .count(&self.before, &target, CounterAction::Drain)
                    .await;
            }
            let (waiter, _listens) = self.waiter(&target).await;
            if matches!(action, CounterAction::Initialise(_)) {
                let _ = self
                    .count(&self.before, &target, CounterAction::Delete)
                    .await;
            }
            let outcome = self.count(&self.guarded, &target, action).await;
            let free = match action {
                CounterAction::Rate { .. } => 1,
                _ => 2,
            };
            let found = (outcome.value, outcome.changed);
            assert_eq!(found, (Some(free), true), "{action:?}");
            let deadline = Instant::now() + SOON;
            let state = self.guarded.inspect(&target, deadline).await.unwrap();
            let waits = state.waiters.iter().any(|it| it.owner == waiter);
            assert!(waits, "{target} after {action:?}: {state:?}");
        }
    }

    /// Free permits cannot be had by draining either. Returns the semaphore.
    async fn drained(&self, kind: &LockKind) -> LockTarget {
        let target = Self::target(kind, "drained");
        self.initialise(&target, 3).await;
        let taken = self
            .count(&self.guarded, &target, CounterAction::Drain)
            .await;
        assert_eq!((taken.value, taken.changed), (Some(0), false), "{target}");
        let left = self
            .count(&self.guarded, &target, CounterAction::Read)
            .await;
        assert_eq!(left.value, Some(3), "{target}");
        target
    }
}

fn granted(outcome: &AttemptOutcome) -> bool {
    matches!(outcome, AttemptOutcome::Granted { .. })
}
