//! Calls to the backend that end soon after their deadline, even if the backend does not keep to it.
//!
//! A backend owes an answer by the deadline and usually has the better error, so it gets a moment more. But
//! one call that never returns must not keep a waiter past its limit, a release for ever, or a renewal from
//! being tried again.

use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout, timeout_at};

use crate::contract::backend::DynBackend;
use crate::contract::backend_error::{BackendError, BackendErrorKind, Executed};
use crate::contract::counter::{CounterOutcome, CounterRequest};
use crate::contract::instance::{Announcement, InstanceQuery, InstanceRecord};
use crate::contract::kind::LockTarget;
use crate::contract::lock_state::{Eviction, LockPage, LockState, ScanCursor};
use crate::contract::request::{
    AcquireAttempt, AttemptOutcome, ExtendOutcome, ExtendRequest, GroupOutcome, ReleaseOutcome,
    ReleaseRequest,
};
use crate::contract::wake::WakeStream;
use crate::engine::holding::services::Services;

/// How long after its deadline a call is given up.
const GRACE: Duration = Duration::from_millis(50);
/// An attempt in a crowd waits for others of it for this part of its time at most.
const PATIENCE: u32 = 4;

impl Services {
    pub(crate) async fn attempt(
        &self,
        attempt: &AcquireAttempt,
    ) -> Result<AttemptOutcome, BackendError> {
        match self.attempting.at_once() {
            Some(_place) => {
                let answer = timeout_at(attempt.deadline + GRACE, self.backend.attempt(attempt));
                answer.await.unwrap_or_else(|_| Err(self.no_answer()))
            }
            // Boxed: it is for those who come in a crowd.
            None => Box::pin(self.attempt_in_turn(attempt)).await,
        }
    }

    async fn attempt_in_turn(
        &self,
        attempt: &AcquireAttempt,
    ) -> Result<AttemptOutcome, BackendError> {
        let _place = self.turn_of(attempt).await;
        let answer = timeout_at(attempt.deadline + GRACE, self.backend.attempt(attempt));
        answer.await.unwrap_or_else(|_| Err(self.no_answer()))
    }

    /// Waits until so few other attempts are under way that this one may be, but not for longer than a part of its time:
    /// behind a slow or distant server the limit delays, and refuses nobody.
    async fn turn_of(&self, attempt: &AcquireAttempt) -> Option<OwnedSemaphorePermit> {
        let shard = self.backend.shard(&attempt.target);
        let time = attempt.deadline.saturating_duration_since(Instant::now());
        let place = timeout(time / PATIENCE, self.attempting.in_turn(shard)).await;
        place.ok().flatten()
    }

    pub(crate) async fn release(
        &self,
        request: &ReleaseRequest,
    ) -> Result<ReleaseOutcome, BackendError> {
        let answer = timeout_at(request.deadline + GRACE, self.backend.release(request));
        answer.await.unwrap_or_else(|_| Err(self.no_answer()))
    }

    /// One answer for each request, whatever the backend returns.
    pub(crate) async fn extend(
        &self,
        batch: &[ExtendRequest],
        deadline: Instant,
    ) -> Vec<Result<ExtendOutcome, BackendError>> {
        let answers = timeout_at(deadline + GRACE, self.backend.extend(batch, deadline));
        let mut answers = answers.await.unwrap_or_default();
        answers.resize_with(batch.len(), || Err(self.no_answer()));
        answers
    }

    /// [`extend`](Self::extend) for one lock.
    pub(crate) async fn extend_one(
        &self,
        request: ExtendRequest,
        deadline: Instant,
    ) -> Result<ExtendOutcome, BackendError> {
        let answer = self.extend(&[request], deadline).await.pop();
        answer.unwrap_or_else(|| Err(self.no_answer()))
    }

    pub(crate) async fn inspect(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<LockState, BackendError> {
        let answer = timeout_at(deadline + GRACE, self.backend.inspect(target, deadline));
        answer.await.unwrap_or_else(|_| Err(self.no_answer()))
    }

    pub(crate) async fn attempt_all(
        &self,
        attempts: &[AcquireAttempt],
        deadline: Instant,
    ) -> Result<GroupOutcome, BackendError> {
        let answer = timeout_at(deadline + GRACE, self.backend.attempt_all(attempts));
        answer.await.unwrap_or_else(|_| Err(self.no_answer()))
    }

    pub(crate) async fn counter(
        &self,
        request: &CounterRequest,
    ) -> Result<CounterOutcome, BackendError> {
        let answer = timeout_at(request.deadline + GRACE, self.backend.counter(request));
        answer.await.unwrap_or_else(|_| Err(self.no_answer()))
    }

    pub(crate) async fn evict(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<Eviction, BackendError> {
        let answer = timeout_at(deadline + GRACE, self.backend.evict(target, deadline));
        answer.await.unwrap_or_else(|_| Err(self.no_answer()))
    }

    pub(crate) async fn scan(
        &self,
        prefix: &str,
        cursor: Option<ScanCursor>,
        deadline: Instant,
    ) -> Result<LockPage, BackendError> {
        let answer = timeout_at(
            deadline + GRACE,
            self.backend.scan(prefix, cursor, deadline),
        );
        answer.await.unwrap_or_else(|_| Err(self.no_answer()))
    }

    /// One answer for each instance, whatever the backend returns.
    pub(crate) async fn instances(
        &self,
        query: &InstanceQuery,
    ) -> Result<Vec<Option<InstanceRecord>>, BackendError> {
        let answer = timeout_at(query.deadline + GRACE, self.backend.instances(query));
        let answer = answer.await.unwrap_or_else(|_| Err(self.no_answer()));
        answer.map(|mut records| {
            records.resize(query.instances.len(), None);
            records
        })
    }

    pub(crate) async fn subscribe(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<WakeStream, BackendError> {
        let answer = timeout_at(deadline + GRACE, self.backend.subscribe(target, deadline));
        answer.await.unwrap_or_else(|_| Err(self.no_answer()))
    }

    fn no_answer(&self) -> BackendError {
        no_answer_of(&self.backend)
    }
}

/// For those who announce an instance, which goes on while its services come and go.
pub(crate) async fn announce(
    backend: &DynBackend,
    announcement: &Announcement,
) -> Result<(), BackendError> {
    let answer = timeout_at(
        announcement.deadline + GRACE,
        backend.announce(announcement),
    );
    answer.await.unwrap_or_else(|_| Err(no_answer_of(backend)))
}

fn no_answer_of(backend: &DynBackend) -> BackendError {
    let name = backend.info().name;
    let message = "no answer before the deadline";
    BackendError::new(name, BackendErrorKind::Timeout, Executed::Maybe, message)
}
