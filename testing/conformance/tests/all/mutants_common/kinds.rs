//! Mutants that mix the kinds of one name.

use locktopus_core::{
    AttemptOutcome, BackendError, BackendErrorKind, CounterOutcome, Eviction, Executed,
    GroupOutcome, LockState, LockTarget,
};

use super::Mutation;
use super::family::Family;
use super::requests::far;

impl Family {
    fn mixes<T>(&self, answer: &Result<T, BackendError>) -> bool {
        let kind = answer.as_ref().err().map(BackendError::kind);
        kind == Some(BackendErrorKind::OtherKind)
    }

    pub(super) fn mixed_attempt(
        &self,
        answer: Result<AttemptOutcome, BackendError>,
    ) -> Result<AttemptOutcome, BackendError> {
        if !self.mixes(&answer) {
            return answer;
        }
        match self.mutation {
            Mutation::OtherKindIsHeld => Ok(AttemptOutcome::Busy { remaining: None }),
            Mutation::OtherKindQueues => Ok(AttemptOutcome::Queued {
                remaining: None,
                ahead: 0,
                last_token: 0,
            }),
            Mutation::OtherKindIsTransient => Err(BackendError::new(
                "mutant",
                BackendErrorKind::Unavailable,
                Executed::No,
                "try again",
            )),
            _ => answer,
        }
    }

    pub(super) fn mixed_group(
        &self,
        answer: Result<GroupOutcome, BackendError>,
    ) -> Result<GroupOutcome, BackendError> {
        match self.is(Mutation::OtherKindInGroups) && self.mixes(&answer) {
            true => Ok(GroupOutcome::Busy {
                index: 0,
                remaining: None,
            }),
            false => answer,
        }
    }

    pub(super) fn mixed_state(
        &self,
        answer: Result<LockState, BackendError>,
    ) -> Result<LockState, BackendError> {
        match self.is(Mutation::OtherKindIsShown) && self.mixes(&answer) {
            true => Ok(LockState::default()),
            false => answer,
        }
    }

    pub(super) fn mixed_count(
        &self,
        answer: Result<CounterOutcome, BackendError>,
    ) -> Result<CounterOutcome, BackendError> {
        match self.is(Mutation::OtherKindCounts) && self.mixes(&answer) {
            true => Ok(CounterOutcome {
                value: None,
                changed: false,
            }),
            false => answer,
        }
    }

    pub(super) fn mixed_eviction(
        &self,
        answer: Result<Eviction, BackendError>,
    ) -> Result<Eviction, BackendError> {
        match self.is(Mutation::OtherKindIsEvicted) && self.mixes(&answer) {
            true => Ok(Eviction::new(Vec::new(), None)),
            false => answer,
        }
    }

    /// Whether the name of a target is in use as another kind.
    pub(super) async fn is_other(&self, target: &LockTarget) -> bool {
        let answer = self.inner.inspect(target, far()).await;
        self.mixes(&answer)
    }
}
