//! The one loop that takes locks: attempt, wait, attempt again.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::backend_error::{BackendError, BackendErrorKind, Executed};
use crate::clock;
use crate::error::{LockError, Phase};
use crate::guard::Held;
use crate::kind::{LockKind, LockTarget};
use crate::lease::{Grant, LeaseState};
use crate::owner::{self, OwnerId};
use crate::reaper::Debt;
use crate::request::{AcquireAttempt, AttemptOutcome};
use crate::services::Services;
use crate::settings::WaitStrategy;
use crate::wake::WakeStream;

/// Everything a request decided, checked.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) target: LockTarget,
    pub(crate) lease: Duration,
    pub(crate) renewed: bool,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) strategy: WaitStrategy,
    pub(crate) wait: Wait,
    pub(crate) cancel: Option<CancellationToken>,
}

/// The time that the first attempt has for its answer, however short the wait limit.
const FIRST_ATTEMPT: Duration = Duration::from_millis(50);

impl Plan {
    /// Completes when the caller's token is cancelled; never without one.
    pub(crate) async fn cancelled(&self) {
        match &self.cancel {
            Some(token) => token.cancelled().await,
            None => std::future::pending().await,
        }
    }
}

/// How long to wait for a lock that somebody else holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// One attempt.
    Not,
    /// At most this long.
    AtMost(Duration),
    /// For ever.
    Forever,
}

impl Wait {
    pub(crate) fn limit(self, from: Instant) -> Option<Instant> {
        match self {
            Self::Not => Some(from),
            Self::AtMost(limit) => from.checked_add(limit),
            Self::Forever => None,
        }
    }
}

/// Takes the lock, or says why not. `Ok(None)`: one attempt was allowed and somebody else holds the lock.
pub(crate) async fn acquire(
    services: &Arc<Services>,
    plan: &Plan,
) -> Result<Option<Held>, LockError> {
    tokio::select! {
        biased;
        () = services.closing.cancelled() => Err(LockError::ShutDown),
        () = plan.cancelled() => Err(LockError::Cancelled { target: plan.target.clone() }),
        outcome = Acquisition::new(services, plan).run() => outcome,
    }
}

/// One acquisition under way. Dropping it at any point gives back whatever an attempt may have taken.
struct Acquisition<'a> {
    services: &'a Arc<Services>,
    plan: &'a Plan,
    started: Instant,
    limit: Option<Instant>,
    owner: OwnerId,
    /// An attempt of `owner` was sent and not answered definitely; it may hold the lock. The token makes a
    /// shutdown wait until this has been handed to the reaper.
    unanswered: Option<TaskTrackerToken>,
    /// An earlier attempt of `owner` got no answer; it may still arrive.
    late_attempt: bool,
    failing_since: Option<Instant>,
    pauses: u32,
}

/// What the last attempt said, for the error if time runs out.
#[derive(Debug)]
enum Obstacle {
    Held(Option<Duration>),
    Failed(BackendError),
}

impl<'a> Acquisition<'a> {
    fn new(services: &'a Arc<Services>, plan: &'a Plan) -> Self {
        let started = Instant::now();
        Self {
            services,
            plan,
            started,
            limit: plan.wait.limit(started),
            owner: plan.target.kind().new_owner(),
            unanswered: None,
            late_attempt: false,
            failing_since: None,
            pauses: 0,
        }
    }

    async fn run(mut self) -> Result<Option<Held>, LockError> {
        let mut hints: Option<WakeStream> = None;
        loop {
            let obstacle = match self.attempt().await? {
                Ok(held) => {
                    if let Some(hints) = hints {
                        hints.won();
                    }
                    return Ok(Some(held));
                }
                Err(obstacle) => obstacle,
            };
            if self.plan.wait == Wait::Not && matches!(obstacle, Obstacle::Held(_)) {
                return Ok(None);
            }
            if !self.time_left() {
                return Err(self.out_of_time(obstacle));
            }
            if self.listens() && hints.is_none() && matches!(obstacle, Obstacle::Held(_)) {
                // Subscribe first, then look again: a release between the two would otherwise be missed.
                hints = self.subscribe().await;
                if hints.is_some() && self.time_left() {
                    continue;
                }
            }
            if self.time_left() {
                self.pause(hints.as_mut(), &obstacle).await;
            }
            // An attempt without time for its answer would tell less than the last one did, and would
            // have to be cleaned up after.
            if !self.time_left() {
                return Err(self.out_of_time(obstacle));
            }
        }
    }

    fn time_left(&self) -> bool {
        self.limit.is_none_or(|limit| Instant::now() < limit)
    }

    async fn attempt(&mut self) -> Result<Result<Held, Obstacle>, LockError> {
        let (begun, sent) = (Instant::now(), clock::now());
        let attempt = AcquireAttempt {
            target: self.plan.target.clone(),
            owner: self.owner.clone(),
            lease: self.plan.lease,
            deadline: self.deadline(),
        };
        self.unanswered = Some(self.services.attempts.token());
        let answer = self.services.attempt(&attempt).await;
        match answer {
            Ok(AttemptOutcome::Granted { token }) => {
                let valid_until = self
                    .services
                    .settings
                    .margin
                    .valid_until(sent, self.plan.lease);
                let now = clock::now();
                if valid_until <= now {
                    // The answer came too late to be of use: give the grant back and start afresh.
                    self.give_up_owner();
                    let name = self.services.backend.info().name;
                    let message = "the grant came after its validity was spent; the backend is slower than the lease";
                    let slow =
                        BackendError::new(name, BackendErrorKind::Timeout, Executed::No, message);
                    return self.failed(slow, begun).map(Err);
                }
                self.failing_since = None;
                let state = Arc::new(LeaseState::new(Grant {
                    target: self.plan.target.clone(),
                    owner: self.owner.clone(),
                    token,
                    lease: self.plan.lease,
                    renewed: self.plan.renewed,
                    hold_until: self.plan.max_hold.and_then(|hold| sent.checked_add(hold)),
                    granted_at: now,
                    valid_until,
                    late_attempt: self.late_attempt,
                }));
                let Some(watch) = self.services.watch(&state) else {
                    return Err(LockError::ShutDown); // dropping `self` gives the grant back
                };
                (self.unanswered, self.late_attempt) = (None, false);
                Ok(Ok(Held {
                    services: Arc::clone(self.services),
                    state,
                    watch,
                }))
            }
            Ok(AttemptOutcome::Held { remaining }) => {
                self.failing_since = None;
                self.unanswered = None;
                Ok(Err(Obstacle::Held(remaining)))
            }
            Err(error) => self.failed(error, begun).map(Err),
        }
    }

    /// Decides whether to go on after the error of an attempt begun at `begun`.
    fn failed(&mut self, error: BackendError, begun: Instant) -> Result<Obstacle, LockError> {
        if error.executed() == Executed::Maybe {
            self.late_attempt = true;
        } else {
            self.unanswered = None;
        }
        let since = *self.failing_since.get_or_insert(begun);
        let patience_over = since.elapsed() >= self.services.settings.outage;
        let may_wait = self.plan.wait != Wait::Not;
        if error.is_transient() && may_wait && !patience_over {
            tracing::debug!(lock = %self.plan.target, %error, "attempt failed, will try again");
            return Ok(Obstacle::Failed(error));
        }
        Err(LockError::Backend {
            target: self.plan.target.clone(),
            phase: Phase::Acquire,
            source: error,
        })
    }

    fn give_up_owner(&mut self) {
        let owner = std::mem::replace(&mut self.owner, self.plan.target.kind().new_owner());
        self.reap(owner);
        (self.unanswered, self.late_attempt) = (None, false);
    }

    fn reap(&self, owner: OwnerId) {
        let until = clock::now() + self.plan.lease + self.services.call_timeout();
        let target = self.plan.target.clone();
        self.services.reap(Debt {
            target,
            owner,
            until,
            late_attempt: self.unanswered.is_some() || self.late_attempt,
        });
    }

    /// A single attempt may take the backend's call timeout; with a wait limit, attempts end with it. Only
    /// the first one always has a moment, or a short limit could not take a lock that is free.
    fn deadline(&self) -> Instant {
        let deadline = Instant::now() + self.services.call_timeout();
        match self.limit {
            Some(limit) if limit > self.started => {
                deadline.min(limit.max(self.started + FIRST_ATTEMPT))
            }
            _ => deadline,
        }
    }

    fn listens(&self) -> bool {
        let tells = match self.plan.target.kind() {
            LockKind::Reentrant => true,
            LockKind::Mutex(profile) => profile.has_side_keys(),
        };
        tells
            && self.services.backend.info().wakes
            && matches!(self.plan.strategy, WaitStrategy::Notify { .. })
    }

    async fn subscribe(&self) -> Option<WakeStream> {
        match self
            .services
            .subscribe(&self.plan.target, self.deadline())
            .await
        {
            Ok(hints) => Some(hints),
            Err(error) => {
                tracing::debug!(lock = %self.plan.target, %error, "cannot listen for releases, polling");
                None
            }
        }
    }

    async fn pause(&mut self, hints: Option<&mut WakeStream>, obstacle: &Obstacle) {
        let pause = self.next_pause(hints.is_some(), obstacle);
        let until = Instant::now() + pause;
        let until = self.limit.map_or(until, |limit| limit.min(until));
        match hints {
            Some(hints) => {
                let _ = tokio::time::timeout_at(until, hints.next()).await;
            }
            None => tokio::time::sleep_until(until).await,
        }
    }

    fn next_pause(&mut self, listening: bool, obstacle: &Obstacle) -> Duration {
        let strategy = if listening {
            self.plan.strategy
        } else {
            self.polling()
        };
        let pause = match strategy {
            WaitStrategy::Notify { heartbeat } => jitter(heartbeat * 3 / 4, heartbeat * 5 / 4),
            WaitStrategy::Poll { min, max } => {
                let top = min
                    .saturating_mul(2_u32.saturating_pow(self.pauses.min(16)))
                    .min(max);
                self.pauses += 1;
                jitter(min / 2, top)
            }
        };
        match obstacle {
            // The holder's lease may be all that stands in the way; the jitter keeps a crowd apart.
            Obstacle::Held(Some(remaining)) => {
                pause.min(*remaining + jitter(Duration::from_millis(1), Duration::from_millis(5)))
            }
            Obstacle::Held(None) => pause,
            Obstacle::Failed(_) => pause.min(jitter(
                Duration::from_millis(20),
                Duration::from_millis(200),
            )),
        }
    }

    fn polling(&self) -> WaitStrategy {
        match self.plan.strategy {
            WaitStrategy::Notify { .. } => WaitStrategy::POLL,
            poll @ WaitStrategy::Poll { .. } => poll,
        }
    }

    fn out_of_time(&self, obstacle: Obstacle) -> LockError {
        let (holder_remaining, source) = match obstacle {
            Obstacle::Held(remaining) => (remaining, None),
            Obstacle::Failed(error) => (None, Some(error)),
        };
        let (target, waited) = (self.plan.target.clone(), self.started.elapsed());
        LockError::WaitTimeout {
            target,
            waited,
            holder_remaining,
            source,
        }
    }
}

impl Drop for Acquisition<'_> {
    fn drop(&mut self) {
        if self.unanswered.is_some() || self.late_attempt {
            self.reap(self.owner.clone());
        }
    }
}

/// A random duration between the two.
fn jitter(low: Duration, high: Duration) -> Duration {
    let spread = high.saturating_sub(low).as_nanos();
    let random = u128::from(u64::from_le_bytes(owner::random()));
    low + Duration::from_nanos(u64::try_from((spread * (random >> 32)) >> 32).unwrap_or(u64::MAX))
}
