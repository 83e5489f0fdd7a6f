//! Mutants of attempts and releases.

use locktopus_core::{
    AcquireAttempt, AttemptOutcome, BackendError, CounterAction, CounterRequest, GroupOutcome,
    LockKind, Mode, OwnerId, ReleaseOutcome, ReleaseRequest,
};

use super::Mutation;
use super::family::Family;
use super::requests::{far, granted};

impl Family {
    pub(super) async fn mutant_attempt(
        &self,
        mut attempt: AcquireAttempt,
    ) -> Result<AttemptOutcome, BackendError> {
        let target = attempt.target.clone();
        let kind = target.kind();
        if self.is(Mutation::LatchIsHeld) && *kind == LockKind::Latch {
            return Ok(granted(None));
        }
        let state = self.state(&target).await;
        let waits = state.position(&attempt.owner).is_some();
        let holds = state.holders.iter().any(|h| h.owner == attempt.owner);
        let others_read = state.holders.iter().any(|h| h.mode == Mode::Read) && !holds;
        let writes = state.holders.iter().any(|h| h.mode == Mode::Exclusive);
        let held = Ok(AttemptOutcome::Busy { remaining: None });
        match self.mutation {
            Mutation::LastComeFirst if attempt.place.is_some() && !waits && !holds => {
                return self.overtake(&attempt).await;
            }
            Mutation::Overtakes if state.holders.is_empty() && !waits => {
                return self.overtake(&attempt).await;
            }
            Mutation::OvertakesSharing if !waits && !holds => {
                return self.overtake(&attempt).await;
            }
            Mutation::PlacesAreNotRenewed if waits => {
                let ahead = state.position(&attempt.owner).unwrap_or(0) as u64;
                return Ok(AttemptOutcome::Queued {
                    remaining: None,
                    ahead,
                    last_token: 0,
                });
            }
            Mutation::RepeatingMoves if waits => {
                let _ = self.inner.release(&undo(&attempt)).await;
            }
            Mutation::PlacesStay if attempt.place.is_some() => {
                attempt.place = Some(std::time::Duration::from_secs(3600));
            }
            Mutation::PlacesAreShort => attempt.place = attempt.place.map(|place| place / 4),
            Mutation::OneTokenOnly => attempt.tokens = 1,
            Mutation::NoFloor => attempt.floor = None,
            Mutation::OneReaderOnly if *kind == LockKind::Read && others_read => return held,
            Mutation::NoDowngrade if *kind == LockKind::Read && holds && writes => return held,
            Mutation::WritersJoinReaders if *kind == LockKind::Write && others_read => {
                return Ok(granted(Some(1 << 50)));
            }
            Mutation::GrantsFromNothing
                if state.available.is_none() && kind.mode() == Mode::Permits =>
            {
                return Ok(granted(None));
            }
            Mutation::TakesAgain if holds => {
                self.add(&attempt, -1).await;
            }
            _ => {}
        }
        Ok(match (self.mutation, self.inner.attempt(&attempt).await?) {
            (
                Mutation::NoneAhead,
                AttemptOutcome::Queued {
                    remaining,
                    last_token,
                    ..
                },
            ) => AttemptOutcome::Queued {
                remaining,
                ahead: 0,
                last_token,
            },
            (
                Mutation::FenceTooHigh,
                AttemptOutcome::Queued {
                    remaining,
                    ahead,
                    last_token,
                },
            ) => {
                let last_token = last_token + 1_000_000_000_000;
                AttemptOutcome::Queued {
                    remaining,
                    ahead,
                    last_token,
                }
            }
            (Mutation::PlaceUnasked, AttemptOutcome::Busy { .. }) => {
                attempt.place = Some(attempt.lease);
                let _ = self.inner.attempt(&attempt).await?;
                AttemptOutcome::Busy { remaining: None }
            }
            (_, outcome) => outcome,
        })
    }

    /// Attempts ignore the queue.
    async fn overtake(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
        let waiting = self.take_out(&attempt.target, 0).await;
        let outcome = self.inner.attempt(attempt).await;
        self.put_back(waiting).await;
        outcome
    }

    async fn add(&self, attempt: &AcquireAttempt, permits: i64) {
        let request = CounterRequest {
            target: attempt.target.clone(),
            operation: OwnerId::generate(),
            action: CounterAction::Add(permits),
            deadline: far(),
        };
        let _ = self.inner.counter(&request).await;
    }

    pub(super) async fn mutant_release(
        &self,
        request: &ReleaseRequest,
    ) -> Result<ReleaseOutcome, BackendError> {
        let mut request = request.clone();
        match (self.mutation, &mut request.linger) {
            (Mutation::LeavesNothing, linger) => *linger = None,
            (Mutation::LeavesToOwner, Some(linger)) => linger.heir = request.owner.clone(),
            (Mutation::LeavesWhatWasLeft, Some(linger)) => linger.time *= 2,
            _ => {}
        }
        let request = &request;
        let (target, owner) = (&request.target, &request.owner);
        let state = self.state(target).await;
        match self.mutation {
            Mutation::ReleaseKeepsPlaces if state.position(owner).is_some() => {
                return Ok(ReleaseOutcome::NotHeld);
            }
            Mutation::NoHandOff => {
                self.take_out(target, 0).await;
            }
            Mutation::HandsOnToOne => {
                self.take_out(target, 1).await;
            }
            Mutation::HandsOnToLast => {
                let waiting = self.take_out(target, 0).await;
                self.put_back(waiting.into_iter().rev()).await;
            }
            _ => {}
        }
        let outcome = self.inner.release(request).await?;
        let as_attempt = AcquireAttempt::new(
            target.clone(),
            owner.clone(),
            std::time::Duration::from_secs(1),
            far(),
        );
        let missed = outcome == ReleaseOutcome::NotHeld;
        match self.mutation {
            Mutation::HandsOnTwice if missed && !state.waiters.is_empty() => {
                if let Some(holder) = state.holder() {
                    let (target, holder) = (target.clone(), holder.owner.clone());
                    let other = ReleaseRequest::new(target, holder, far());
                    let _ = self.inner.release(&other).await?;
                }
            }
            Mutation::ReleasesAnotherReader if missed && *target.kind() == LockKind::Read => {
                if let Some(holder) = state.holder() {
                    let (target, holder) = (target.clone(), holder.owner.clone());
                    let other = ReleaseRequest::new(target, holder, far());
                    let _ = self.inner.release(&other).await?;
                }
            }
            Mutation::ReturnsOne if !missed => {
                self.add(&as_attempt, 1 - i64::from(request.permits)).await;
            }
            Mutation::ReturnsTwice if missed && state.available.is_some() => {
                self.add(&as_attempt, 1).await;
            }
            _ => {}
        }
        Ok(outcome)
    }

    pub(super) async fn mutant_group(
        &self,
        attempts: &[AcquireAttempt],
    ) -> Result<GroupOutcome, BackendError> {
        let mut waiting = Vec::new();
        for attempt in attempts {
            let state = self.state(&attempt.target).await;
            if self.is(Mutation::GroupsOvertake) && state.holders.is_empty() {
                waiting.extend(self.take_out(&attempt.target, 0).await);
            }
            if self.is(Mutation::GroupsOnce)
                && state.holders.iter().any(|h| h.owner == attempt.owner)
            {
                return Ok(GroupOutcome::Busy {
                    index: 0,
                    remaining: None,
                });
            }
        }
        let outcome = self.inner.attempt_all(attempts).await?;
        self.put_back(waiting).await;
        Ok(match (self.mutation, outcome) {
            (Mutation::GroupsInPart, GroupOutcome::Busy { index, remaining }) => {
                for attempt in &attempts[..index] {
                    let _ = self.inner.attempt(attempt).await?;
                }
                GroupOutcome::Busy { index, remaining }
            }
            (Mutation::GroupsBlameFirst, GroupOutcome::Busy { remaining, .. }) => {
                GroupOutcome::Busy {
                    index: 0,
                    remaining,
                }
            }
            (Mutation::GroupTokensReversed, GroupOutcome::Granted { mut tokens }) => {
                tokens.reverse();
                GroupOutcome::Granted { tokens }
            }
            (_, outcome) => outcome,
        })
    }
}

fn undo(attempt: &AcquireAttempt) -> ReleaseRequest {
    ReleaseRequest::new(attempt.target.clone(), attempt.owner.clone(), far())
}
