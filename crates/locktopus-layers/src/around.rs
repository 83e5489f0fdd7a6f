//! Support for layers that do the same around each call, so that they write it only once.

use std::future::Future;

use locktopus_contract::{BackendError, ExtendOutcome, ExtendRequest, WakeStream};
use tokio::time::Instant;

use crate::call::Call;

/// What a layer does around each call to the store. [`around_each_call!`] turns it into a backend.
pub(crate) trait Around: Send + Sync {
    /// Makes one call. `run` takes the deadline for the backend.
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

    /// Makes one call for a batch of extensions, each with its own answer.
    fn extend_around(
        &self,
        batch: &[ExtendRequest],
        deadline: Instant,
    ) -> impl Future<Output = Vec<Result<ExtendOutcome, BackendError>>> + Send;

    /// Changes the messages that listeners of a stream get.
    fn heard(&self, stream: WakeStream) -> WakeStream {
        stream
    }
}

/// A batch of extensions as one call, for a layer with a field `inner` that is [`Around`] each
/// call. It is a macro because Rust 1.88 refuses the same code as a default method of the trait
/// (E0308: one type is more general than the other).
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

/// Implements `Layer` and all capabilities for a layer with a field `inner` that is [`Around`] each
/// call. The methods in braces complete the implementation.
macro_rules! around_each_call {
    ($layer:ty, { $($own:tt)* }) => {
        #[::async_trait::async_trait]
        impl ::locktopus_contract::Layer for $layer {
            fn inner(&self) -> &dyn ::locktopus_contract::LockBackend {
                &*self.inner
            }

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

            async fn extend(
                &self,
                batch: &[::locktopus_contract::ExtendRequest],
                deadline: ::tokio::time::Instant,
            ) -> Vec<Result<::locktopus_contract::ExtendOutcome, ::locktopus_contract::BackendError>> {
                self.extend_around(batch, deadline).await
            }

            async fn inspect(
                &self,
                target: &::locktopus_contract::LockTarget,
                deadline: ::tokio::time::Instant,
            ) -> Result<::locktopus_contract::LockState, ::locktopus_contract::BackendError> {
                let run = |deadline| self.inner.inspect(target, deadline);
                self.around($crate::call::Call::Inspect, deadline, run).await
            }

            fn wake_ups(&self) -> Option<&dyn ::locktopus_contract::WakeUps> {
                self.inner.wake_ups().map(|_| self as _)
            }

            fn counters(&self) -> Option<&dyn ::locktopus_contract::Counters> {
                self.inner.counters().map(|_| self as _)
            }

            fn groups(&self) -> Option<&dyn ::locktopus_contract::Groups> {
                self.inner.groups().map(|_| self as _)
            }

            fn directory(&self) -> Option<&dyn ::locktopus_contract::Directory> {
                self.inner.directory().map(|_| self as _)
            }

            fn instances(&self) -> Option<&dyn ::locktopus_contract::Instances> {
                self.inner.instances().map(|_| self as _)
            }

            fn diagnosis(&self) -> Option<&dyn ::locktopus_contract::Diagnostics> {
                self.inner.diagnosis().map(|_| self as _)
            }

            $($own)*
        }

        #[::async_trait::async_trait]
        impl ::locktopus_contract::WakeUps for $layer {
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
        }

        #[::async_trait::async_trait]
        impl ::locktopus_contract::Counters for $layer {
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
        }

        #[::async_trait::async_trait]
        impl ::locktopus_contract::Groups for $layer {
            fn group(&self, target: &::locktopus_contract::LockTarget) -> Option<u32> {
                self.inner.group(target)
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
        }

        #[::async_trait::async_trait]
        impl ::locktopus_contract::Directory for $layer {
            async fn scan(
                &self,
                prefix: &str,
                cursor: Option<::locktopus_contract::ScanCursor>,
                deadline: ::tokio::time::Instant,
            ) -> Result<::locktopus_contract::LockPage, ::locktopus_contract::BackendError> {
                let run = |deadline| self.inner.scan(prefix, cursor.clone(), deadline);
                self.around($crate::call::Call::Scan, deadline, run).await
            }

            async fn evict(
                &self,
                target: &::locktopus_contract::LockTarget,
                deadline: ::tokio::time::Instant,
            ) -> Result<::locktopus_contract::Eviction, ::locktopus_contract::BackendError> {
                let run = |deadline| self.inner.evict(target, deadline);
                self.around($crate::call::Call::Evict, deadline, run).await
            }
        }

        #[::async_trait::async_trait]
        impl ::locktopus_contract::Instances for $layer {
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

            async fn records(
                &self,
                query: &::locktopus_contract::InstanceQuery,
            ) -> Result<Vec<Option<::locktopus_contract::InstanceRecord>>, ::locktopus_contract::BackendError>
            {
                let run = |deadline| async move {
                    let query = ::locktopus_contract::InstanceQuery { deadline, ..query.clone() };
                    self.inner.records(&query).await
                };
                self.around($crate::call::Call::Instances, query.deadline, run).await
            }
        }

        #[::async_trait::async_trait]
        impl ::locktopus_contract::Diagnostics for $layer {
            async fn diagnose(
                &self,
                deadline: ::tokio::time::Instant,
            ) -> Result<::locktopus_contract::Diagnosis, ::locktopus_contract::BackendError> {
                let run = |deadline| self.inner.diagnose(deadline);
                self.around($crate::call::Call::Diagnose, deadline, run).await
            }
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
        // The original, with its source.
        answers.insert(0, Err(error));
    }
    answers
}

#[cfg(test)]
mod tests {
    use std::ptr;
    use std::sync::Arc;
    use std::time::Duration;

    use locktopus_contract::{
        Counters, Diagnostics, Directory, DynBackend, Groups, Instances, LockBackend, WakeUps,
    };
    use locktopus_memory::MemoryBackend;

    use crate::{Chaos, Prefix, Retry, Timeout};

    /// A backend with locks only and no capabilities.
    #[derive(Debug)]
    struct Bare(MemoryBackend);

    impl locktopus_contract::Layer for Bare {
        fn inner(&self) -> &dyn LockBackend {
            &self.0
        }

        fn wake_ups(&self) -> Option<&dyn WakeUps> {
            None
        }

        fn counters(&self) -> Option<&dyn Counters> {
            None
        }

        fn groups(&self) -> Option<&dyn Groups> {
            None
        }

        fn directory(&self) -> Option<&dyn Directory> {
            None
        }

        fn instances(&self) -> Option<&dyn Instances> {
            None
        }

        fn diagnosis(&self) -> Option<&dyn Diagnostics> {
            None
        }
    }

    /// The object that answers for each capability.
    fn answering(backend: &dyn LockBackend) -> [(&'static str, Option<*const ()>); 6] {
        macro_rules! each {
            ($($name:ident)+) => {
                [$((stringify!($name), backend.$name().map(|it| ptr::from_ref(it).cast())),)+]
            };
        }
        each!(wake_ups counters groups directory instances diagnosis)
    }

    /// Capabilities that bypass a layer.
    const UNSEEN: &[(&str, &str)] = &[
        ("prefix", "diagnosis"),
        ("recorded", "counters"),
        ("recorded", "instances"),
        ("recorded", "diagnosis"),
    ];

    fn layers(backend: &DynBackend) -> Vec<(&'static str, DynBackend)> {
        let inner = || Arc::clone(backend);
        vec![
            ("prefix", Arc::new(Prefix::new(inner(), "tenant-7:"))),
            ("timeout", Arc::new(Timeout::new(inner(), Duration::MAX))),
            ("retry", Arc::new(Retry::new(inner()))),
            ("chaos", Arc::new(Chaos::new(inner()))),
            #[cfg(all(feature = "history", unix))]
            (
                "recorded",
                Arc::new({
                    let recorder = locktopus_history::Recorder::in_memory();
                    crate::Recorded::new(inner(), &recorder, 1)
                }),
            ),
        ]
    }

    #[test]
    fn a_layer_sees_each_capability_of_its_backend_and_has_no_other() {
        let memory: DynBackend = Arc::new(MemoryBackend::new());
        for (name, layer) in layers(&memory) {
            let own = Arc::as_ptr(&layer).cast::<()>();
            for ((capability, found), (_, inner)) in
                answering(&*layer).into_iter().zip(answering(&*memory))
            {
                let expected = match UNSEEN.contains(&(name, capability)) {
                    true => inner,
                    false => Some(own),
                };
                assert_eq!(found, expected, "{capability} of {name}");
            }
        }
        let bare: DynBackend = Arc::new(Bare(MemoryBackend::new()));
        for (name, layer) in layers(&bare) {
            for (capability, found) in answering(&*layer) {
                assert_eq!(found, None, "{capability} of {name}");
            }
        }
    }
}
