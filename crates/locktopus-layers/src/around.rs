//! The layers that do the same around each call write what they do once.

use std::future::Future;

use locktopus_contract::{BackendError, ExtendOutcome, ExtendRequest, WakeStream};
use tokio::time::Instant;

use crate::call::Call;

/// What a layer does around each call that reaches the store. [`around_each_call!`] makes a backend of it.
pub(crate) trait Around: Send + Sync {
    /// Makes one call. `run` is a function of the deadline that the backend is to be given.
    fn around<T, F, Fut>(
        &self,
        call: Call,
        deadline: Instant,
        run: F,
    ) -> impl Future<Output = Result<T, BackendError>> + Send
    where
        T: Send,
        F: Fn(Instant) -> Fut + Send + Sync,
        Fut: Future<Output = Result<T, BackendError>> + Send;

    /// Makes one call for a batch of extensions, each of which has an answer of its own.
    fn extend_around(
        &self,
        batch: &[ExtendRequest],
        deadline: Instant,
    ) -> impl Future<Output = Vec<Result<ExtendOutcome, BackendError>>> + Send;

    /// What those who listen hear of a stream.
    fn heard(&self, stream: WakeStream) -> WakeStream {
        stream
    }
}

/// A batch of extensions as one call, for a layer with a field `inner` that is [`Around`] each call. Written into each of them: what
/// the trait itself would provide, Rust 1.88 refuses (E0308: one type is more general than the other).
macro_rules! extend_as_one_call {
    () => {
        async fn extend_around(
            &self,
            batch: &[::locktopus_contract::ExtendRequest],
            deadline: ::tokio::time::Instant,
        ) -> Vec<Result<::locktopus_contract::ExtendOutcome, ::locktopus_contract::BackendError>> {
            let run = |deadline| async move { Ok(self.inner.extend(batch, deadline).await) };
            let answers = self.around($crate::call::Call::Extend, deadline, run).await;
            answers.unwrap_or_else(|error| $crate::around::for_each_of(batch.len(), error))
        }
    };
}

/// Implements `LockBackend` for a layer with a field `inner` that is [`Around`] each call. The methods named first are
/// forwarded; what stands in braces completes the implementation.
macro_rules! around_each_call {
    ($layer:ty, forward: $($method:ident)+, { $($own:tt)* }) => {
        #[::async_trait::async_trait]
        impl ::locktopus_contract::LockBackend for $layer {
            ::locktopus_contract::forward_backend!(inner: $($method)+);

            async fn attempt(
                &self,
                attempt: &::locktopus_contract::AcquireAttempt,
            ) -> Result<::locktopus_contract::AttemptOutcome, ::locktopus_contract::BackendError> {
                let run = |deadline| async move {
                    let attempt = ::locktopus_contract::AcquireAttempt { deadline, ..attempt.clone() };
                    self.inner.attempt(&attempt).await
                };
                self.around($crate::call::Call::Attempt, attempt.deadline, run).await
            }

            async fn attempt_all(
                &self,
                attempts: &[::locktopus_contract::AcquireAttempt],
            ) -> Result<::locktopus_contract::GroupOutcome, ::locktopus_contract::BackendError> {
                let Some(first) = attempts.first() else {
                    return self.inner.attempt_all(attempts).await;
                };
                let run = |deadline| async move {
                    let at = |attempt: &::locktopus_contract::AcquireAttempt| {
                        ::locktopus_contract::AcquireAttempt { deadline, ..attempt.clone() }
                    };
                    let attempts: Vec<_> = attempts.iter().map(at).collect();
                    self.inner.attempt_all(&attempts).await
                };
                self.around($crate::call::Call::Attempt, first.deadline, run).await
            }

            async fn release(
                &self,
                request: &::locktopus_contract::ReleaseRequest,
            ) -> Result<::locktopus_contract::ReleaseOutcome, ::locktopus_contract::BackendError> {
                let run = |deadline| async move {
                    let request = ::locktopus_contract::ReleaseRequest { deadline, ..request.clone() };
                    self.inner.release(&request).await
                };
                self.around($crate::call::Call::Release, request.deadline, run).await
            }

            async fn inspect(
                &self,
                target: &::locktopus_contract::LockTarget,
                deadline: ::tokio::time::Instant,
            ) -> Result<::locktopus_contract::LockState, ::locktopus_contract::BackendError> {
                let run = |deadline| self.inner.inspect(target, deadline);
                self.around($crate::call::Call::Inspect, deadline, run).await
            }

            async fn counter(
                &self,
                request: &::locktopus_contract::CounterRequest,
            ) -> Result<::locktopus_contract::CounterOutcome, ::locktopus_contract::BackendError> {
                let run = |deadline| async move {
                    let request = ::locktopus_contract::CounterRequest { deadline, ..request.clone() };
                    self.inner.counter(&request).await
                };
                self.around($crate::call::Call::Count, request.deadline, run).await
            }

            async fn evict(
                &self,
                target: &::locktopus_contract::LockTarget,
                deadline: ::tokio::time::Instant,
            ) -> Result<::locktopus_contract::Eviction, ::locktopus_contract::BackendError> {
                let run = |deadline| self.inner.evict(target, deadline);
                self.around($crate::call::Call::Evict, deadline, run).await
            }

            async fn scan(
                &self,
                prefix: &str,
                cursor: Option<::locktopus_contract::ScanCursor>,
                deadline: ::tokio::time::Instant,
            ) -> Result<::locktopus_contract::LockPage, ::locktopus_contract::BackendError> {
                let run = |deadline| self.inner.scan(prefix, cursor.clone(), deadline);
                self.around($crate::call::Call::Scan, deadline, run).await
            }

            async fn announce(
                &self,
                announcement: &::locktopus_contract::Announcement,
            ) -> Result<(), ::locktopus_contract::BackendError> {
                let run = |deadline| async move {
                    let announcement =
                        ::locktopus_contract::Announcement { deadline, ..announcement.clone() };
                    self.inner.announce(&announcement).await
                };
                self.around($crate::call::Call::Announce, announcement.deadline, run).await
            }

            async fn instances(
                &self,
                query: &::locktopus_contract::InstanceQuery,
            ) -> Result<Vec<Option<::locktopus_contract::InstanceRecord>>, ::locktopus_contract::BackendError>
            {
                let run = |deadline| async move {
                    let query = ::locktopus_contract::InstanceQuery { deadline, ..query.clone() };
                    self.inner.instances(&query).await
                };
                self.around($crate::call::Call::Instances, query.deadline, run).await
            }

            async fn diagnose(
                &self,
                deadline: ::tokio::time::Instant,
            ) -> Result<::locktopus_contract::Diagnosis, ::locktopus_contract::BackendError> {
                let run = |deadline| self.inner.diagnose(deadline);
                self.around($crate::call::Call::Diagnose, deadline, run).await
            }

            async fn extend(
                &self,
                batch: &[::locktopus_contract::ExtendRequest],
                deadline: ::tokio::time::Instant,
            ) -> Vec<Result<::locktopus_contract::ExtendOutcome, ::locktopus_contract::BackendError>> {
                self.extend_around(batch, deadline).await
            }

            fn listen(
                &self,
                target: &::locktopus_contract::LockTarget,
            ) -> Option<::locktopus_contract::WakeStream> {
                let stream = self.inner.listen(target)?;
                Some(self.heard(stream))
            }

            async fn subscribe(
                &self,
                target: &::locktopus_contract::LockTarget,
                deadline: ::tokio::time::Instant,
            ) -> Result<::locktopus_contract::WakeStream, ::locktopus_contract::BackendError> {
                let run = |deadline| self.inner.subscribe(target, deadline);
                let stream = self.around($crate::call::Call::Subscribe, deadline, run).await?;
                Ok(self.heard(stream))
            }

            $($own)*
        }
    };
}

pub(crate) use {around_each_call, extend_as_one_call};

/// One error as the answer to each extension of a batch.
pub(crate) fn for_each_of(
    count: usize,
    error: BackendError,
) -> Vec<Result<ExtendOutcome, BackendError>> {
    let (backend, kind, executed) = (error.backend(), error.kind(), error.executed());
    let message = error.message().to_owned();
    let copy = || Err(BackendError::new(backend, kind, executed, message.clone()));
    let mut answers: Vec<_> = (1..count).map(|_| copy()).collect();
    if count > 0 {
        // With its source.
        answers.insert(0, Err(error));
    }
    answers
}
