//! Acquires several locks: group after group in order, holding those it has, and releasing all of
//! them on failure.

use std::convert::Infallible;
use std::time::Duration;

use futures_util::future::{join_all, select_all};
use locktopus_contract::{BackendError, LockTarget, internal};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::acquired_member::AcquiredMember;
use super::group::{GroupAttempt, GroupResult};
use super::guard::first_lost;
use super::owner_holds::OwnerHolds;
use super::set::{Member, Unit};
use crate::engine::acquisition::{self, Wait};
use crate::engine::error::{LockError, LostCause, Phase};
use crate::handles::guard::LockGuard;

/// How often a group is tried as a whole before its locks are acquired one by one.
const MAX_GROUP_ROUNDS: u32 = 3;

enum CollectOutcome {
    Acquired,
    /// One attempt was allowed, and the lock is held by another owner.
    Busy,
    /// A lock that was acquired before is lost.
    Lost(LockTarget, LostCause),
}

/// Acquires all locks. `Ok(None)`: one attempt was allowed and one of them is held.
pub(super) async fn collect(
    units: &[Unit],
    wait: Wait,
    cancel: Option<CancellationToken>,
) -> Result<Option<Vec<AcquiredMember>>, LockError> {
    let first = &units[0].members[0];
    first.services().ready_for(&first.target, Phase::Acquire)?;
    let members = units.iter().flat_map(|unit| &unit.members);
    let mut cancels: Vec<_> = cancel.into_iter().collect();
    for member in members {
        cancels.extend(member.cancels()?);
    }
    let collector = Collector::new(wait);
    tokio::select! {
        biased;
        () = any_cancelled(&cancels) => {
            let target = units[0].members[0].target.clone();
            Err(LockError::Cancelled { target })
        }
        outcome = collector.run(units) => outcome,
    }
}

async fn any_cancelled(tokens: &[CancellationToken]) {
    if tokens.is_empty() {
        return std::future::pending().await;
    }
    select_all(tokens.iter().map(|token| Box::pin(token.cancelled()))).await;
}

struct Collector {
    wait: Wait,
    started: Instant,
}

impl Collector {
    fn new(wait: Wait) -> Self {
        let started = Instant::now();
        Self { wait, started }
    }

    async fn run(&self, units: &[Unit]) -> Result<Option<Vec<AcquiredMember>>, LockError> {
        let Some(holds) = OwnerHolds::enter(units, self.wait, self.started).await? else {
            return Ok(None);
        };
        let mut failing_since = None;
        loop {
            let mut taken = Vec::new();
            let error = match self.pass(&mut taken, units).await? {
                CollectOutcome::Acquired => match refresh(&taken).await {
                    Ok(()) => {
                        holds.entered(&taken);
                        return Ok(Some(taken));
                    }
                    Err(error) => error,
                },
                CollectOutcome::Busy => return Ok(None),
                CollectOutcome::Lost(target, cause) => LockError::Lost { target, cause },
            };
            drop(taken);
            // No work was done yet, so a loss is only a reason to start again. So is a lease that
            // could not be extended.
            let target = match &error {
                LockError::Lost { target, .. } if self.wait != Wait::Not => target,
                LockError::Backend { target, source, .. }
                    if self.bears(source, &mut failing_since, (&units[0], Instant::now())) =>
                {
                    target
                }
                _ => return Err(error),
            };
            tracing::debug!(lock = %target, %error, "beginning again");
            self.pause(target).await?;
        }
    }

    /// Whether to try again after this error of a call that began at `begun`.
    fn bears(
        &self,
        error: &BackendError,
        failing_since: &mut Option<Instant>,
        (unit, begun): (&Unit, Instant),
    ) -> bool {
        let patience = unit.members[0].services().settings.tolerate_outage;
        error.is_transient()
            && self.wait != Wait::Not
            && failing_since.get_or_insert(begun).elapsed() < patience
    }

    async fn pass(
        &self,
        taken: &mut Vec<AcquiredMember>,
        units: &[Unit],
    ) -> Result<CollectOutcome, LockError> {
        for unit in units {
            let step = match &unit.members[..] {
                [only] => self.one(taken, only, self.wait).await?,
                _ => self.unit(taken, unit).await?,
            };
            if !matches!(step, CollectOutcome::Acquired) {
                return Ok(step);
            }
        }
        Ok(CollectOutcome::Acquired)
    }

    /// Acquires the locks of a group, by one request if possible.
    ///
    /// A lock of the group that is held elsewhere is waited for in its queue while nothing else of
    /// the group is held. Then the others must be free at that moment. If they never are, the locks
    /// are acquired one after the other in the common order, which takes longer but always ends.
    async fn unit(
        &self,
        taken: &mut Vec<AcquiredMember>,
        unit: &Unit,
    ) -> Result<CollectOutcome, LockError> {
        let before = taken.len();
        let mut in_the_way: Option<usize> = None;
        let (mut rounds, mut failing_since) = (0, None);
        while rounds < MAX_GROUP_ROUNDS {
            if let Some(index) = in_the_way {
                let step = self.one(taken, &unit.members[index], self.wait).await?;
                if !matches!(step, CollectOutcome::Acquired) {
                    return Ok(step);
                }
            }
            match self
                .rest(taken, unit, in_the_way, &mut failing_since)
                .await?
            {
                GroupResult::Acquired => return Ok(CollectOutcome::Acquired),
                GroupResult::Busy(_) if self.wait == Wait::Not => return Ok(CollectOutcome::Busy),
                GroupResult::Busy(index) => {
                    taken.truncate(before);
                    (in_the_way, rounds) = (Some(index), rounds + 1);
                }
                GroupResult::Failed => {
                    taken.truncate(before);
                    in_the_way = None;
                    self.pause(&unit.members[0].target).await?;
                }
            }
        }
        for member in &unit.members {
            let step = self.one(taken, member, self.wait).await?;
            if !matches!(step, CollectOutcome::Acquired) {
                return Ok(step);
            }
        }
        Ok(CollectOutcome::Acquired)
    }

    /// Acquires one lock, waiting in its queue, and keeps those acquired before.
    async fn one(
        &self,
        taken: &mut Vec<AcquiredMember>,
        member: &Member,
        wait: Wait,
    ) -> Result<CollectOutcome, LockError> {
        let plan = member.plan(self.left(wait, taken, &member.target)?)?;
        let step = tokio::select! {
            biased;
            (cause, index) = first_lost(taken.iter().map(|t| &t.lease)) => {
                return Ok(CollectOutcome::Lost(taken[index].guard.target().clone(), cause));
            }
            never = keep(taken) => match never {},
            held = acquisition::acquire(member.services(), &plan) => held,
        };
        match step {
            Ok(Some(held)) => {
                taken.push(AcquiredMember::new(member, LockGuard::new(held)));
                Ok(CollectOutcome::Acquired)
            }
            Ok(None) => Ok(CollectOutcome::Busy),
            Err(error) => Err(self.whole_wait(error)),
        }
    }

    /// Acquires the locks of a group without waiting, except the one that it already holds.
    async fn rest(
        &self,
        taken: &mut Vec<AcquiredMember>,
        unit: &Unit,
        except: Option<usize>,
        failing_since: &mut Option<Instant>,
    ) -> Result<GroupResult, LockError> {
        let others = (0..unit.members.len()).filter(|index| Some(*index) != except);
        let rest: Vec<usize> = others.collect();
        let begun = Instant::now();
        match self.rest_once(taken, unit, &rest).await {
            Err(LockError::Backend { target, source, .. })
                if self.bears(&source, failing_since, (unit, begun)) =>
            {
                tracing::debug!(lock = %target, error = %source, "attempt failed, will try again");
                Ok(GroupResult::Failed)
            }
            Ok(group) => {
                *failing_since = None;
                Ok(group)
            }
            Err(error) => Err(error),
        }
    }

    async fn rest_once(
        &self,
        taken: &mut Vec<AcquiredMember>,
        unit: &Unit,
        rest: &[usize],
    ) -> Result<GroupResult, LockError> {
        if let [index] = rest {
            let step = self.one(taken, &unit.members[*index], Wait::Not).await?;
            return Ok(match step {
                CollectOutcome::Acquired => GroupResult::Acquired,
                CollectOutcome::Busy => GroupResult::Busy(*index),
                CollectOutcome::Lost(..) => GroupResult::Failed,
            });
        }
        let wait = self.left(self.wait, taken, &unit.members[rest[0]].target)?;
        let members: Vec<&Member> = rest.iter().map(|index| &unit.members[*index]).collect();
        let attempt = GroupAttempt::new(&members, wait, self.started)?;
        Ok(match attempt.run(taken).await? {
            GroupResult::Busy(index) => GroupResult::Busy(rest[index]),
            group => group,
        })
    }

    /// The rest of the wait. The first lock is always tried.
    fn left(
        &self,
        wait: Wait,
        taken: &[AcquiredMember],
        target: &LockTarget,
    ) -> Result<Wait, LockError> {
        let Wait::AtMost(limit) = wait else {
            return Ok(wait);
        };
        let left = limit.saturating_sub(self.started.elapsed());
        if left.is_zero() && !(taken.is_empty() && limit.is_zero()) {
            return Err(LockError::out_of_time(target, self.started));
        }
        Ok(Wait::AtMost(left))
    }

    /// A short random pause, so that processes that failed together do not try again together.
    async fn pause(&self, target: &LockTarget) -> Result<(), LockError> {
        let millis = 5 + u64::from(internal::random::<1>()[0]) / 8;
        let until = Instant::now() + Duration::from_millis(millis);
        let limit = self.wait.limit(self.started);
        tokio::time::sleep_until(limit.map_or(until, |limit| limit.min(until))).await;
        if limit.is_some_and(|limit| limit <= Instant::now()) {
            return Err(LockError::out_of_time(target, self.started));
        }
        Ok(())
    }

    /// The caller waited for all locks, not only for the last one.
    fn whole_wait(&self, mut error: LockError) -> LockError {
        if let LockError::WaitTimeout { waited, .. } = &mut error {
            *waited = self.started.elapsed();
        }
        error
    }
}

/// Extends fixed leases that were acquired early.
async fn keep(taken: &[AcquiredMember]) -> Infallible {
    loop {
        let Some(due) = taken.iter().filter_map(AcquiredMember::due).min() else {
            return std::future::pending().await;
        };
        // A failed extension is tried again soon. If the lease ends first, its loss is noticed
        // elsewhere.
        let soon = Instant::now() + Duration::from_millis(5);
        tokio::time::sleep_until(due.max(soon)).await;
        let now = Instant::now();
        let due = taken
            .iter()
            .filter(|t| t.due().is_some_and(|due| due <= now));
        join_all(due.map(AcquiredMember::extend)).await;
    }
}

async fn refresh(taken: &[AcquiredMember]) -> Result<(), LockError> {
    let refreshed = join_all(taken.iter().map(AcquiredMember::refresh)).await;
    refreshed.into_iter().collect()
}
