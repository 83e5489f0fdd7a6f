//! Calls to the backend that end soon after their deadline, even if the backend does not keep to
//! it.
//!
//! A backend owes an answer by the deadline and usually has the better error, so it gets a moment
//! more. But a call that never returns must not keep a waiter past its limit, block a release
//! forever, or prevent the retry of a renewal.

use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{Either, ready};
use locktopus_contract::{
    AcquireAttempt, Announcement, AttemptOutcome, BackendError, BackendErrorKind, DynBackend,
    Executed, ExtendOutcome, ExtendRequest, GroupOutcome, InstanceQuery, InstanceRecord,
    LockTarget, ReleaseOutcome, ReleaseRequest, internal,
};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::engine::holding::limits::Debts;
use crate::engine::holding::services::Services;

/// How long after its deadline a call is abandoned.
const ANSWER_GRACE: Duration = Duration::from_millis(50);
/// In a crowd, an attempt waits for others for at most this part of its time.
const TURN_WAIT_DIVISOR: u32 = 4;

impl Services {
    /// Sends an attempt when the limits allow it. Calls `sends` just before, with the token that
    /// makes a shutdown wait for it. If the future is dropped earlier, nothing was sent. `owes`: a
    /// release is owed for its owner id anyway, so this attempt adds none.
    ///
    /// Not an async function, for the same reason as `from_backend`.
    pub(crate) fn attempt<'a>(
        &'a self,
        attempt: &'a AcquireAttempt,
        owes: bool,
        sends: impl FnOnce(TaskTrackerToken) + Send + 'a,
    ) -> impl Future<Output = Result<AttemptOutcome, BackendError>> + Send + 'a {
        let slot = self.attempting.at_once();
        let slot = slot.filter(|_| owes || !Debts::may_be_many(self.tasks.len()));
        async move {
            let Some(_slot) = slot else {
                // Boxed, because only attempts in a crowd need it.
                return Box::pin(self.attempt_in_turn(attempt, owes, sends)).await;
            };
            self.has_timers()?;
            sends(self.attempts.token());
            // `within`, without a function more on the way of every acquire.
            let answer = timeout_at(
                attempt.deadline + ANSWER_GRACE,
                self.backend.attempt(attempt),
            );
            answer.await.unwrap_or_else(|_| Err(self.no_answer()))
        }
    }

    async fn attempt_in_turn(
        &self,
        attempt: &AcquireAttempt,
        owes: bool,
        sends: impl FnOnce(TaskTrackerToken) + Send,
    ) -> Result<AttemptOutcome, BackendError> {
        self.has_timers()?;
        let patience = half_way_to(attempt.deadline);
        let _slot = loop {
            if !owes {
                self.little_is_owed(&attempt.target, patience).await?;
            }
            let slot = self.turn_of(attempt).await;
            // Attempts let in together may owe too much by the time of this one's turn.
            if owes || self.is_little_owed(&attempt.target) {
                break slot;
            }
        };
        sends(self.attempts.token());
        let call = self.backend.attempt(attempt);
        self.within(attempt.deadline, call).await
    }

    fn is_little_owed(&self, target: &LockTarget) -> bool {
        !Debts::may_be_many(self.tasks.len()) || self.debts.are_few(self.backend.shard(target))
    }

    /// Waits until the shard of this lock is owed so little that more may be taken there.
    async fn little_is_owed(
        &self,
        target: &LockTarget,
        patience: Instant,
    ) -> Result<(), BackendError> {
        if self.is_little_owed(target) {
            return Ok(());
        }
        let few = self.debts.few(self.backend.shard(target));
        timeout_at(patience, few).await.map_err(|_| {
            let owed = self.tasks.len();
            let message = format!(
                "{owed} releases in the background have no answer yet, so nothing was sent; many futures of \
                 acquisitions were dropped, or the server does not answer"
            );
            self.error(BackendErrorKind::Unavailable, Executed::No, message)
        })
    }

    /// Waits until few enough attempts are under way, for at most a part of its time: behind a slow
    /// or distant server the limit delays attempts and refuses none.
    async fn turn_of(&self, attempt: &AcquireAttempt) -> Option<OwnedSemaphorePermit> {
        let shard = self.backend.shard(&attempt.target);
        let time = attempt.deadline.saturating_duration_since(Instant::now());
        let slot = timeout(time / TURN_WAIT_DIVISOR, self.attempting.in_turn(shard)).await;
        slot.ok().flatten()
    }

    pub(crate) async fn release(
        &self,
        request: &ReleaseRequest,
    ) -> Result<ReleaseOutcome, BackendError> {
        let call = self.backend.release(request);
        self.within(request.deadline, call).await
    }

    /// Returns one answer for each request, even if the backend returns fewer or more.
    pub(crate) async fn extend(
        &self,
        batch: &[ExtendRequest],
        deadline: Instant,
    ) -> Vec<Result<ExtendOutcome, BackendError>> {
        let call = async { Ok(self.backend.extend(batch, deadline).await) };
        let mut answers = match self.within(deadline, call).await {
            Err(error) if error.kind() == BackendErrorKind::NoRuntime => {
                let refused = || Err(BackendError::no_runtime(error.backend()));
                return std::iter::repeat_with(refused).take(batch.len()).collect();
            }
            answers => answers.unwrap_or_default(),
        };
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

    pub(crate) async fn attempt_all(
        &self,
        attempts: &[AcquireAttempt],
        deadline: Instant,
        sends: impl FnOnce(TaskTrackerToken) + Send,
    ) -> Result<GroupOutcome, BackendError> {
        self.has_timers()?;
        let patience = half_way_to(deadline);
        tokio::select! {
            biased;
            // A shutdown waits only for sent requests.
            () = self.closing.cancelled() => {
                let (kind, message) = (BackendErrorKind::Closed, "shut down; nothing was sent");
                return Err(self.error(kind, Executed::No, message));
            }
            little = self.little_is_owed(&attempts[0].target, patience) => little?,
        }
        sends(self.attempts.token());
        self.within(deadline, self.backend.attempt_all(attempts))
            .await
    }

    /// Returns one answer for each instance, even if the backend returns fewer or more.
    pub(crate) async fn instances(
        &self,
        query: &InstanceQuery,
    ) -> Result<Vec<Option<InstanceRecord>>, BackendError> {
        let call = self.backend.records(query);
        let mut records = self.within(query.deadline, call).await?;
        records.resize(query.instances.len(), None);
        Ok(records)
    }

    /// A call that ends soon after its deadline.
    ///
    /// Not an async function, for the same reason as `from_backend`.
    pub(crate) fn within<T>(
        &self,
        deadline: Instant,
        call: impl Future<Output = Result<T, BackendError>>,
    ) -> impl Future<Output = Result<T, BackendError>> {
        if let Err(error) = self.has_timers() {
            return Either::Left(ready(Err(error)));
        }
        let answer = timeout_at(deadline + ANSWER_GRACE, call);
        Either::Right(answer.map(|answer| answer.unwrap_or_else(|_| Err(self.no_answer()))))
    }

    /// Timers panic outside a runtime.
    fn has_timers(&self) -> Result<(), BackendError> {
        let no_runtime = |_| BackendError::no_runtime(self.backend.info().name);
        internal::current().map(drop).map_err(no_runtime)
    }

    fn no_answer(&self) -> BackendError {
        no_answer_of(&self.backend)
    }

    /// A grant whose validity is over is given back.
    pub(crate) fn too_slow(&self) -> BackendError {
        let message =
            "the grant came after its validity was spent; the backend is slower than the lease";
        self.error(BackendErrorKind::Timeout, Executed::No, message)
    }

    pub(crate) fn error(
        &self,
        kind: BackendErrorKind,
        executed: Executed,
        message: impl Into<String>,
    ) -> BackendError {
        BackendError::new(self.backend.info().name, kind, executed, message)
    }
}

/// For announcements of an instance, which continue while its services come and go.
pub(crate) async fn announce(
    backend: &DynBackend,
    announcement: &Announcement,
) -> Result<(), BackendError> {
    let answer = timeout_at(
        announcement.deadline + ANSWER_GRACE,
        backend.announce(announcement),
    );
    answer.await.unwrap_or_else(|_| Err(no_answer_of(backend)))
}

/// How long an attempt waits for owed releases. The other half is for its turn and answer.
fn half_way_to(deadline: Instant) -> Instant {
    let now = Instant::now();
    now + deadline.saturating_duration_since(now) / 2
}

fn no_answer_of(backend: &DynBackend) -> BackendError {
    let name = backend.info().name;
    let message = "no answer before the deadline";
    BackendError::new(name, BackendErrorKind::Timeout, Executed::Maybe, message)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use async_trait::async_trait;
    use futures_util::FutureExt as _;
    use locktopus_contract::{InstanceId, LockKind, LockName, LockState, OwnerId};
    use tokio::time::sleep;

    use super::*;
    use crate::engine::holding::reaper::PendingRelease;
    use crate::engine::settings::Settings;
    use crate::{BackendInfo, Groups, Instances, LockBackend, NameError};

    const MS: Duration = Duration::from_millis(1);
    const TIME: Duration = Duration::from_millis(100);

    /// Answers every call after this time.
    #[derive(Debug)]
    struct Late {
        info: BackendInfo,
        after: Duration,
    }

    impl Late {
        async fn refused<T>(&self) -> Result<T, BackendError> {
            sleep(self.after).await;
            let (kind, executed) = (BackendErrorKind::Refused, Executed::No);
            Err(BackendError::new("late", kind, executed, "this is it"))
        }
    }

    #[async_trait]
    impl LockBackend for Late {
        fn check(&self, target: &LockTarget) -> Result<(), NameError> {
            target.check_name()
        }

        fn info(&self) -> &BackendInfo {
            &self.info
        }

        async fn attempt(&self, _: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
            self.refused().await
        }

        async fn release(&self, _: &ReleaseRequest) -> Result<ReleaseOutcome, BackendError> {
            self.refused().await
        }

        /// Leaves out the last answer.
        async fn extend(
            &self,
            batch: &[ExtendRequest],
            _: Instant,
        ) -> Vec<Result<ExtendOutcome, BackendError>> {
            let mut answers = vec![self.refused().await];
            answers.extend(batch.iter().skip(2).map(|_| Ok(ExtendOutcome::Extended)));
            answers
        }

        async fn inspect(&self, _: &LockTarget, _: Instant) -> Result<LockState, BackendError> {
            self.refused().await
        }

        async fn close(&self) {}

        fn groups(&self) -> Option<&dyn Groups> {
            Some(self)
        }

        fn instances(&self) -> Option<&dyn Instances> {
            Some(self)
        }
    }

    #[async_trait]
    impl Groups for Late {
        fn group(&self, _: &LockTarget) -> Option<u32> {
            None
        }

        async fn attempt_all(&self, _: &[AcquireAttempt]) -> Result<GroupOutcome, BackendError> {
            self.refused().await
        }
    }

    #[async_trait]
    impl Instances for Late {
        async fn announce(&self, _: &Announcement) -> Result<(), BackendError> {
            self.refused().await
        }

        /// Knows one record, for any instances.
        async fn records(
            &self,
            _: &InstanceQuery,
        ) -> Result<Vec<Option<InstanceRecord>>, BackendError> {
            sleep(self.after).await;
            Ok(vec![Some(InstanceRecord::new("known"))])
        }
    }

    fn services(after: Duration) -> Arc<Services> {
        let info = BackendInfo::new("late", "late", TIME);
        let backend = Arc::new(Late { info, after });
        Services::start(backend, Settings::default())
    }

    fn target() -> LockTarget {
        LockTarget::new(LockName::new("n").unwrap(), LockKind::Reentrant)
    }

    fn extension() -> ExtendRequest {
        ExtendRequest::new(target(), OwnerId::generate(), TIME)
    }

    /// The outcome of each call, with its name.
    async fn each(after: Duration) -> Vec<(&'static str, Result<(), BackendErrorKind>)> {
        let services = services(after);
        let (target, owner) = (target(), OwnerId::generate());
        let deadline = || Instant::now() + TIME;
        let attempt = || AcquireAttempt::new(target.clone(), owner.clone(), TIME, deadline());
        let mut all = Vec::new();
        macro_rules! note {
            ($name:literal, $call:expr) => {
                let begun = Instant::now();
                let answer: Result<_, BackendError> = $call.await;
                assert_eq!(begun.elapsed(), after.min(TIME + ANSWER_GRACE), $name);
                all.push(($name, answer.map(drop).map_err(|error| error.kind())));
            };
        }
        note!("attempt", services.attempt(&attempt(), false, drop));
        note!(
            "attempt in turn",
            services.attempt_in_turn(&attempt(), false, drop)
        );
        note!(
            "attempt all",
            services.attempt_all(&[attempt()], deadline(), drop)
        );
        let release = ReleaseRequest::new(target.clone(), owner.clone(), deadline());
        note!("release", services.release(&release));
        note!("extend", services.extend_one(extension(), deadline()));
        let announcement = Announcement {
            namespace: String::new(),
            instance: InstanceId::from_bytes([1; 6]),
            record: None,
            keep: TIME,
            deadline: deadline(),
        };
        note!("announce", announce(&services.backend, &announcement));
        all
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_may_come_a_moment_after_the_deadline() {
        for (name, answer) in each(TIME + ANSWER_GRACE - MS).await {
            assert_eq!(answer, Err(BackendErrorKind::Refused), "{name}");
        }
        for (name, answer) in each(TIME + ANSWER_GRACE + MS).await {
            assert_eq!(answer, Err(BackendErrorKind::Timeout), "{name}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn there_is_an_answer_for_each_that_was_asked_about() {
        let (mine, yours) = (
            InstanceId::from_bytes([1; 6]),
            InstanceId::from_bytes([2; 6]),
        );
        for (after, known) in [
            (TIME + ANSWER_GRACE - MS, true),
            (TIME + ANSWER_GRACE + MS, false),
        ] {
            let query = InstanceQuery {
                namespace: String::new(),
                instances: vec![mine, yours],
                deadline: Instant::now() + TIME,
            };
            let answer = services(after).instances(&query).await;
            let expected = vec![Some(InstanceRecord::new("known")), None];
            assert_eq!(answer.ok(), known.then_some(expected));
        }
        let batch = [extension(), extension()];
        let extended = services(MS).extend(&batch, Instant::now() + TIME).await;
        let kinds = extended
            .into_iter()
            .map(|answer| answer.unwrap_err().kind());
        let expected = [BackendErrorKind::Refused, BackendErrorKind::Timeout];
        assert_eq!(kinds.collect::<Vec<_>>(), expected);
    }

    fn pending() -> PendingRelease {
        PendingRelease::new(target(), OwnerId::generate(), TIME * 100, false)
    }

    /// Attempts wait for releases that the server does not answer, but not for refused ones.
    #[tokio::test(start_paused = true)]
    async fn releases_that_are_refused_are_answered() {
        let services = services(MS);
        for _ in 0..1024 {
            services.reap(pending());
        }
        let deadline = Instant::now() + TIME;
        let attempt = AcquireAttempt::new(target(), OwnerId::generate(), TIME, deadline);
        let answer = services.attempt(&attempt, false, drop).await;
        assert_eq!(services.tasks.len(), 1024);
        assert_eq!(answer.unwrap_err().kind(), BackendErrorKind::Refused);
    }

    #[test]
    fn outside_a_runtime_nothing_waits() {
        let services = services(MS);
        let shard = services.backend.shard(&target());
        let owe = |_| (services.debts.owe(shard), services.tasks.token());
        let _owed: Vec<_> = (0..1024).map(owe).collect();
        let deadline = Instant::now() + TIME;
        let attempt = AcquireAttempt::new(target(), OwnerId::generate(), TIME, deadline);
        let one = services.attempt(&attempt, false, drop).now_or_never();
        let all = [attempt.clone()];
        let all = services.attempt_all(&all, deadline, drop).now_or_never();
        for error in [one.unwrap().unwrap_err(), all.unwrap().unwrap_err()] {
            assert_eq!(error.kind(), BackendErrorKind::NoRuntime);
        }
    }

    /// In a crowd, an attempt waits for others of its shard, but at most a quarter of its time.
    #[tokio::test(start_paused = true)]
    async fn a_crowd_delays_and_refuses_nobody() {
        let services = services(TIME / 2);
        let target = target();
        let limit = services.attempting.in_turn(services.backend.shard(&target));
        let first = limit.await.unwrap();
        // All slots but one are taken, and then all.
        let mut others = vec![first];
        let turn = |time: Duration| {
            let deadline = Instant::now() + time;
            AcquireAttempt::new(target.clone(), OwnerId::generate(), TIME, deadline)
        };
        let begun = Instant::now();
        while let Some(slot) = services.turn_of(&turn(TIME)).await {
            others.push(slot);
            assert_eq!(begun.elapsed(), Duration::ZERO);
        }
        assert_eq!((others.len(), begun.elapsed()), (64, TIME / 4));
        others.pop();
        assert!(services.turn_of(&turn(TIME)).await.is_some());
    }
}
