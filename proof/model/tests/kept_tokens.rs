//! Each script that grants a lock keeps the last token for at least twice the lease of the new
//! holder, even if the caller of the script asked for less.
#![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "precise_common/mod.rs"]
mod common;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use common::{Lock, is_granted, kinds};
use locktopus_core::{
    AcquireAttempt, CounterAction, Directory as _, Executed, ExtendOutcome, ExtendRequest,
    GroupOutcome, Groups as _, LockBackend as _, LockKind, LockName, LockTarget, Locktopus,
    MutexProfile, OwnerId, ReleaseOutcome, ReplicaNeed, SafetyMode, TokenRetention, WakeStream,
};
use locktopus_model::{ModelClient, Pass};
use locktopus_protocol::{BackendOptions, Keys, RedisBackend};
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
/// Twice this is longer than any request asks to keep the token.
const LEASE: Duration = Duration::from_secs(600);

/// A lock, its holder, and a subscription for its waiters.
async fn held(kind: &LockKind, lease: Duration) -> (Lock, OwnerId, WakeStream) {
    let (lock, owner) = taken(ModelClient::default(), kind, SafetyMode::Plain, lease).await;
    let heard = lock.listen().await;
    (lock, owner, heard)
}

async fn taken(
    client: ModelClient,
    kind: &LockKind,
    safety: SafetyMode,
    lease: Duration,
) -> (Lock, OwnerId) {
    let options = BackendOptions {
        token_retention: TokenRetention::from(MINUTE),
        safety,
        ..BackendOptions::default()
    };
    let lock = Lock::on(client, kind.clone(), 1, options).await;
    let holder = lock.as_kind(holding(kind));
    let owner = holder.target.kind().new_owner();
    holder.take_with(&owner, lease, 1).await;
    (lock, owner)
}

impl Lock {
    async fn queue(&self, lease: Duration) -> OwnerId {
        let owner = self.target.kind().new_owner();
        self.wait(&owner, lease, LEASE * 4).await;
        owner
    }

    async fn holds(&self, owner: &OwnerId) -> bool {
        self.holders().await.contains(owner)
    }

    /// How long the last token is kept.
    fn kept(&self) -> Duration {
        self.kept_of(&self.target).unwrap()
    }

    /// How long the last token of a name is kept. `None` if there is none.
    fn kept_of(&self, target: &LockTarget) -> Option<Duration> {
        let key = Keys::of(target).token().unwrap().to_owned();
        let words = ["PTTL", &key].map(|word| word.as_bytes().to_vec());
        let left = self.client.server().command(&words).unwrap().as_int();
        left.unwrap().try_into().ok().map(Duration::from_millis)
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
        // One release in sixteen, by the clock, takes the long way.
        for tick in 0..3 {
            let (lock, owner, _heard) = held(&kind, SECOND).await;
            lock.pass(Duration::from_micros(5 + tick));
            let next = lock.queue(LEASE).await;
            let released = lock.as_kind(holding(&kind)).release(&owner).await;
            assert_eq!(released, ReleaseOutcome::Released, "{kind:?}");
            assert!(lock.holds(&next).await, "{kind:?}");
            assert_eq!(lock.kept(), LEASE * 2, "{kind:?}");
        }
    }
}

/// Behind a deaf waiter, which the fast path of a release does not pass.
#[tokio::test(start_paused = true)]
async fn a_release_that_passes_the_deaf_keeps_it_too() {
    for kind in kinds() {
        let (lock, owner, _heard) = held(&kind, SECOND).await;
        let options = BackendOptions::default();
        let deaf = Arc::new(lock.client.another());
        let deaf = RedisBackend::new(deaf as _, options).await.unwrap();
        let (target, soon) = (lock.target.clone(), Instant::now() + SECOND);
        let attempt = AcquireAttempt {
            place: Some(LEASE),
            ..AcquireAttempt::new(target, kind.new_owner(), SECOND, soon)
        };
        let _ = deaf.attempt(&attempt).await.unwrap();
        let next = lock.queue(LEASE).await;
        let _ = lock.as_kind(holding(&kind)).release(&owner).await;
        assert!(lock.holds(&next).await, "{kind:?}");
        assert_eq!(lock.kept(), LEASE * 2, "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_finds_it_free_keeps_the_token_for_the_next_holder() {
    for kind in kinds() {
        let (lock, _, _heard) = held(&kind, SECOND).await;
        let next = lock.queue(LEASE).await;
        lock.pass(SECOND * 2);
        let other = kind.new_owner();
        let tried = lock.attempt_only(&other).await;
        assert_eq!(is_granted(&tried), kind == LockKind::Read, "{kind:?}");
        assert!(lock.holds(&next).await, "{kind:?}");
        // A reader that was let in with it has no token of its own.
        assert!(
            lock.kept() >= LEASE * 2 || kind == LockKind::Read,
            "{kind:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_eviction_keeps_the_token_for_the_next_holder() {
    for kind in kinds() {
        let (lock, _, _heard) = held(&kind, SECOND).await;
        let next = lock.queue(LEASE).await;
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
        let (lock, _, _heard) = held(&kind, LEASE).await;
        lock.pass(LEASE / 2);
        let soon = Instant::now() + SECOND;
        lock.backend.evict(&lock.target, soon).await.unwrap();
        assert!(lock.kept() >= LEASE, "{kind:?}: {:?}", lock.kept());
    }
}

#[tokio::test(start_paused = true)]
async fn more_permits_keep_the_token_for_the_next_holder() {
    for kind in [LockKind::Semaphore, LockKind::PermitSemaphore] {
        let (lock, _, _heard) = held(&kind, LEASE).await;
        let next = lock.queue(LEASE).await;
        let _ = lock.count(CounterAction::Add(1)).await;
        assert!(lock.holds(&next).await, "{kind:?}");
        assert_eq!(lock.kept(), LEASE * 2, "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_group_keeps_its_tokens_for_itself() {
    let (lock, owner, _heard) = held(&LockKind::Reentrant, SECOND).await;
    let _ = lock.release(&owner).await;
    let deadline = Instant::now() + SECOND;
    let member = |lease| {
        let owner = LockKind::Reentrant.new_owner();
        AcquireAttempt::new(lock.target.clone(), owner, lease, deadline)
    };
    let taken = lock.backend.attempt_all(&[member(LEASE)]).await.unwrap();
    assert!(matches!(taken, GroupOutcome::Granted { .. }));
    assert_eq!(lock.kept(), LEASE * 2);
}

/// Locks on a server whose clock follows that of the test.
struct Timed {
    client: Arc<ModelClient>,
    locks: Locktopus,
}

impl Timed {
    async fn new(keep: impl Into<TokenRetention>) -> Self {
        let client = Arc::new(ModelClient::timed());
        let options = BackendOptions {
            token_retention: keep.into(),
            ..BackendOptions::default()
        };
        let backend = RedisBackend::new(Arc::clone(&client) as _, options).await;
        let locks = Locktopus::builder(backend.unwrap()).build().unwrap();
        Self { client, locks }
    }

    /// Holds the lock with renewals.
    async fn hold(&self, kind: &LockKind, lease: Duration) -> Box<dyn Any> {
        if kind == &LockKind::Write {
            let request = self.locks.rw_lock("it").write().renewed_lease(lease);
            return Box::new(request.acquire().await.unwrap());
        }
        let request = match kind {
            LockKind::Reentrant => self.locks.lock("it"),
            LockKind::Fair => self.locks.fair_lock("it"),
            _ => self.locks.mutex("it"),
        };
        Box::new(request.renewed_lease(lease).acquire().await.unwrap())
    }

    /// How long the last token is kept. `None` means for ever.
    fn kept(&self) -> Option<Duration> {
        let words = ["PTTL", "redisson_lock_token:{it}"].map(|word| word.as_bytes().to_vec());
        let left = self.client.server().command(&words).unwrap().as_int();
        let left = left.unwrap();
        assert_ne!(left, -2, "the token is forgotten");
        (left >= 0).then(|| Duration::from_millis(left.try_into().unwrap()))
    }
}

/// The shortest remaining time of the token while a lock is held for this long.
async fn least_kept(timed: &Timed, held: Duration) -> Option<Duration> {
    let (mut least, end) = (timed.kept(), Instant::now() + held);
    while Instant::now() < end {
        sleep(SECOND).await;
        least = least.min(timed.kept());
    }
    least
}

#[tokio::test(start_paused = true)]
async fn renewals_keep_the_token_as_long_as_a_grant_does() {
    for kind in kinds().into_iter().filter(LockKind::has_tokens) {
        for lease in [1, 10, 30, 600].map(|seconds| SECOND * seconds) {
            let timed = Timed::new(MINUTE).await;
            let _guard = timed.hold(&kind, lease).await;
            let least = least_kept(&timed, MINUTE * 4 + lease * 4).await.unwrap();
            // A renewal leaves at least three quarters of the retention, and twice the lease; then
            // up to a third of the lease passes.
            let promised = (MINUTE * 3 / 4).max(lease * 2) - lease / 3 - SECOND;
            assert!(least >= promised, "{kind:?}, {lease:?}: {least:?}");
        }
    }
}

/// It adds half a lease to twice the lease, or the next renewal would have to ask again.
#[tokio::test(start_paused = true)]
async fn an_extension_keeps_the_token_for_a_lease_that_is_longer_than_that() {
    let timed = Timed::new(MINUTE).await;
    let guard = timed.locks.lock("it").acquire().await.unwrap();
    for (lease, kept) in [
        (20, 60),
        (30, 75),
        (37, 75),
        (40, 100),
        (600, 1_500),
        (1, 1_500),
    ] {
        guard.extend(SECOND * lease).await.unwrap();
        let found = timed.kept().unwrap();
        let expected = SECOND * kept;
        assert!(
            found <= expected && found + SECOND > expected,
            "{lease} s: {found:?}"
        );
    }
}

/// An adopter of a lease does not know how long its token is kept.
#[tokio::test(start_paused = true)]
async fn whoever_adopts_a_lease_keeps_its_token() {
    let timed = Timed::new(MINUTE).await;
    let request = || timed.locks.lock("it").fixed_lease(MINUTE * 2);
    let guard = request().acquire().await.unwrap();
    sleep(MINUTE).await;
    let ticket = guard.into_ticket().unwrap();
    let longer = request().token_retention(MINUTE * 10);
    let _guard = longer.adopt(&ticket).await.unwrap();
    assert_eq!(timed.kept(), Some(MINUTE * 10));
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_held_by_nobody_keeps_its_token() {
    for kind in [0, 1, 2] {
        for minutes in [1, 10] {
            let timed = Timed::new(MINUTE).await;
            let request = match kind {
                0 => timed.locks.lock("it"),
                1 => timed.locks.fair_lock("it"),
                _ => timed.locks.mutex("it"),
            };
            let request = request.hold_at_least(MINUTE * minutes);
            request.acquire().await.unwrap().release().await.unwrap();
            let kept = timed.kept().unwrap();
            assert!(kept + SECOND > MINUTE * 2 * minutes, "{kind}: {kept:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_kept_for_ever_stays_so() {
    let timed = Timed::new(TokenRetention::Forever).await;
    let guard = timed.locks.lock("it").acquire().await.unwrap();
    guard.extend(MINUTE).await.unwrap();
    // Another client with a limited retention.
    let asked = timed.locks.lock("other").token_retention(MINUTE);
    let _other = asked.acquire().await.unwrap();
    assert_eq!(least_kept(&timed, MINUTE * 5).await, None);
}

/// How many scripts run while a lock is held with renewals for an hour.
async fn scripts_of_an_hour(kind: &str, keep: TokenRetention) -> usize {
    let timed = Timed::new(keep).await;
    let request = match kind {
        "lock" => timed.locks.lock("it"),
        "mutex" => timed.locks.mutex("it"),
        "single-key mutex" => timed.locks.mutex_as("it", MutexProfile::single_key()),
        _ => timed.locks.rw_lock("it").read(),
    };
    let _guard = request.acquire().await.unwrap();
    let _ = timed.client.take_runs();
    sleep(MINUTE * 60 - SECOND).await;
    timed.client.take_runs().len()
}

#[tokio::test(start_paused = true)]
async fn no_renewal_costs_more_except_one_in_a_quarter_of_the_retention() {
    for (kind, more) in [
        ("lock", 3),
        ("mutex", 3),
        ("single-key mutex", 0),
        ("reader", 0),
    ] {
        let usual = scripts_of_an_hour(kind, TokenRetention::Forever).await;
        let kept = scripts_of_an_hour(kind, (MINUTE * 60).into()).await;
        assert_eq!(kept - usual, more, "{kind}");
    }
}

/// Some of the batch ask for it, and some are no longer held.
#[tokio::test(start_paused = true)]
async fn a_batch_keeps_the_tokens_of_those_that_ask_for_it() {
    for kind in kinds().into_iter().filter(LockKind::has_tokens) {
        let (lock, owner, _heard) = held(&kind, LEASE / 20).await;
        let named = |name: &str| LockTarget::new(LockName::new(name).unwrap(), kind.clone());
        let mut batch = Vec::new();
        for (at, keep_token) in [None, Some(LEASE), Some(MINUTE / 2), Some(LEASE)]
            .into_iter()
            .enumerate()
        {
            let target = named(&format!("it:{at}"));
            if at < 3 {
                let soon = Instant::now() + SECOND;
                let attempt = AcquireAttempt::new(target.clone(), owner.clone(), LEASE / 20, soon);
                let _ = lock.backend.attempt(&attempt).await.unwrap();
            }
            batch.push(ExtendRequest {
                keep_token,
                ..ExtendRequest::new(target, owner.clone(), LEASE)
            });
        }
        let answers = lock.backend.extend(&batch, Instant::now() + SECOND).await;
        let answers: Vec<_> = answers.into_iter().map(Result::unwrap).collect();
        let (extended, missing) = (ExtendOutcome::Extended, ExtendOutcome::Missing);
        assert_eq!(answers, [extended, extended, extended, missing], "{kind:?}");
        let kept = batch.iter().map(|request| lock.kept_of(&request.target));
        let expected = [Some(MINUTE), Some(LEASE), Some(MINUTE), None];
        assert_eq!(kept.collect::<Vec<_>>(), expected, "{kind:?}");
    }
}

/// The next extension asks again.
#[tokio::test(start_paused = true)]
async fn an_extension_that_may_not_have_kept_the_token_says_so() {
    let safety = SafetyMode::Replicated {
        need: ReplicaNeed::All,
        timeout: SECOND / 10,
    };
    let client = ModelClient::with_replicas(1);
    let (lock, owner) = taken(client, &LockKind::Reentrant, safety, SECOND).await;
    let request = ExtendRequest {
        keep_token: Some(LEASE),
        ..ExtendRequest::new(lock.target.clone(), owner, SECOND * 2)
    };
    let extend = async || {
        let soon = Instant::now() + SECOND;
        lock.backend
            .extend(std::slice::from_ref(&request), soon)
            .await
            .remove(0)
    };
    // The server knows neither of the two scripts, and refuses the second one.
    let refused = Pass::Refused(0, "ERR no".to_owned());
    lock.client
        .plan([Pass::Fine, Pass::Fine, Pass::Fine, refused]);
    let error = extend().await.unwrap_err();
    assert_eq!(error.executed(), Executed::Maybe);
    assert!(
        error.message().contains("its token was not kept"),
        "{error}"
    );
    assert_eq!(extend().await.unwrap(), ExtendOutcome::Extended);
    assert_eq!(lock.kept(), LEASE);
}
