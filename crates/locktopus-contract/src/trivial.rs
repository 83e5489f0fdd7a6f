//! The answers of a backend that does not have something.

/// Writes methods of [`LockBackend`](crate::LockBackend) for what a backend does not have.
///
/// For use inside an `impl LockBackend` block, also one marked with `#[async_trait]`: name the methods. The
/// [table](crate::LockBackend#trivial-answers) says what each of them answers, and what follows for users. The methods that
/// it does not list have no trivial answer: they are what a lock is.
///
/// ```
/// use async_trait::async_trait;
/// use locktopus_contract::{BackendInfo, LockBackend, trivial_backend};
/// # use locktopus_contract::{
/// #     AcquireAttempt, AttemptOutcome, BackendError, DynBackend, Eviction, ExtendOutcome, ExtendRequest, LockState,
/// #     LockTarget, ReleaseOutcome, ReleaseRequest, forward_backend,
/// # };
///
/// #[derive(Debug)]
/// struct Plain {
///     info: BackendInfo,
/// #   inner: DynBackend,
/// }
///
/// #[async_trait]
/// impl LockBackend for Plain {
///     trivial_backend!(check shard group attempt_all counter scan announce instances listen subscribe diagnose);
///
///     fn info(&self) -> &BackendInfo {
///         &self.info
///     }
///
///     // And attempt, release, extend, inspect, evict and close.
/// #   forward_backend!(inner: attempt release extend inspect evict close);
/// }
/// ```
#[macro_export]
macro_rules! trivial_backend {
    ($($method:ident)+) => {
        $($crate::trivial_backend!(@ $method);)+
    };
    (@ check) => {
        fn check(&self, target: &$crate::LockTarget) -> ::std::result::Result<(), $crate::NameError> {
            target.check_name()
        }
    };
    (@ shard) => {
        fn shard(&self, _target: &$crate::LockTarget) -> u32 {
            0
        }
    };
    (@ group) => {
        fn group(&self, _target: &$crate::LockTarget) -> ::std::option::Option<u32> {
            ::std::option::Option::None
        }
    };
    (@ listen) => {
        fn listen(&self, _target: &$crate::LockTarget) -> ::std::option::Option<$crate::WakeStream> {
            ::std::option::Option::None
        }
    };
    (@ attempt_all) => {
        $crate::trivial_backend!(@@ attempt_all(&'b [$crate::AcquireAttempt]) $crate::GroupOutcome,
            "locks are taken one by one here");
    };
    (@ counter) => {
        $crate::trivial_backend!(@@ counter(&'b $crate::CounterRequest) $crate::CounterOutcome,
            "there are no semaphores and no latches here");
    };
    (@ scan) => {
        $crate::trivial_backend!(@@ scan(&'b str, ::std::option::Option<$crate::ScanCursor>, $crate::forward::Instant)
            $crate::LockPage, "locks cannot be listed here");
    };
    (@ announce) => {
        $crate::trivial_backend!(@@ announce(&'b $crate::Announcement) (), "records of instances are not kept here");
    };
    (@ instances) => {
        $crate::trivial_backend!(@@ instances(&'b $crate::InstanceQuery)
            ::std::vec::Vec<::std::option::Option<$crate::InstanceRecord>>, "records of instances are not kept here");
    };
    (@ subscribe) => {
        $crate::trivial_backend!(@@ subscribe(&'b $crate::LockTarget, $crate::forward::Instant) $crate::WakeStream,
            "nobody is woken here; waiters ask again");
    };
    (@ diagnose) => {
        fn diagnose<'a, 'r>(
            &'a self,
            _deadline: $crate::forward::Instant,
        ) -> $crate::forward::BoxFuture<'r, ::std::result::Result<$crate::Diagnosis, $crate::BackendError>>
        where
            'a: 'r,
            Self: 'r,
        {
            let nodes = ::std::vec![$crate::LockBackend::info(self).description.clone()];
            let diagnosis = $crate::Diagnosis { nodes, ..::std::default::Default::default() };
            ::std::boxed::Box::pin(::std::future::ready(::std::result::Result::Ok(diagnosis)))
        }
    };
    (@@ $method:ident($first:ty $(, $more:ty)*) $answer:ty, $why:literal) => {
        fn $method<'a, 'b, 'r>(
            &'a self,
            _: $first
            $(, _: $more)*
        ) -> $crate::forward::BoxFuture<'r, ::std::result::Result<$answer, $crate::BackendError>>
        where
            'a: 'r,
            'b: 'r,
            Self: 'r,
        {
            let name = $crate::LockBackend::info(self).name;
            let error = $crate::BackendError::unsupported(name, $why);
            ::std::boxed::Box::pin(::std::future::ready(::std::result::Result::Err(error)))
        }
    };
}
