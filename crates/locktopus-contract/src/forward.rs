//! Forwarding for backends that wrap a backend and change only some of its methods.

/// Writes methods of [`LockBackend`](crate::LockBackend) that call the same method of an inner backend.
///
/// For use inside an `impl LockBackend` block, also one marked with `#[async_trait]`: name the field that holds the
/// inner backend and the methods to forward. There are no default methods in the trait on purpose; what a wrapper
/// passes on unseen stands in its own text.
///
/// ```
/// # use std::sync::Arc;
/// # use locktopus::{DynBackend, LockBackend, MemoryBackend, forward_backend};
/// /// A backend that adds nothing.
/// #[derive(Debug)]
/// struct Transparent {
///     inner: DynBackend,
/// }
///
/// impl LockBackend for Transparent {
///     forward_backend!(inner: info check shard attempt group attempt_all release extend inspect counter evict
///         scan announce instances listen subscribe diagnose close);
/// }
///
/// let backend = Transparent { inner: Arc::new(MemoryBackend::new()) };
/// assert_eq!(backend.info().name, "memory");
/// ```
#[macro_export]
macro_rules! forward_backend {
    ($inner:ident: $($method:ident)+) => {
        $($crate::forward_backend!(@ $inner $method);)+
    };
    (@ $inner:ident info) => {
        fn info(&self) -> &$crate::BackendInfo {
            self.$inner.info()
        }
    };
    (@ $inner:ident check) => {
        fn check(&self, target: &$crate::LockTarget) -> ::std::result::Result<(), $crate::NameError> {
            self.$inner.check(target)
        }
    };
    (@ $inner:ident shard) => {
        fn shard(&self, target: &$crate::LockTarget) -> u32 {
            self.$inner.shard(target)
        }
    };
    (@ $inner:ident group) => {
        fn group(&self, target: &$crate::LockTarget) -> ::std::option::Option<u32> {
            self.$inner.group(target)
        }
    };
    (@ $inner:ident listen) => {
        fn listen(&self, target: &$crate::LockTarget) -> ::std::option::Option<$crate::WakeStream> {
            self.$inner.listen(target)
        }
    };
    (@ $inner:ident attempt) => {
        $crate::forward_backend!(@@ $inner attempt(attempt: $crate::AcquireAttempt) $crate::AttemptOutcome);
    };
    (@ $inner:ident release) => {
        $crate::forward_backend!(@@ $inner release(request: $crate::ReleaseRequest) $crate::ReleaseOutcome);
    };
    (@ $inner:ident counter) => {
        $crate::forward_backend!(@@ $inner counter(request: $crate::CounterRequest) $crate::CounterOutcome);
    };
    (@ $inner:ident announce) => {
        $crate::forward_backend!(@@ $inner announce(announcement: $crate::Announcement) ());
    };
    (@ $inner:ident instances) => {
        $crate::forward_backend!(@@ $inner instances(query: $crate::InstanceQuery)
            ::std::vec::Vec<::std::option::Option<$crate::InstanceRecord>>);
    };
    (@ $inner:ident attempt_all) => {
        $crate::forward_backend!(@@ $inner attempt_all(attempts: [$crate::AcquireAttempt]) $crate::GroupOutcome);
    };
    (@ $inner:ident inspect) => {
        $crate::forward_backend!(@@ $inner inspect(target: $crate::LockTarget, until) $crate::LockState);
    };
    (@ $inner:ident evict) => {
        $crate::forward_backend!(@@ $inner evict(target: $crate::LockTarget, until) $crate::Eviction);
    };
    (@ $inner:ident subscribe) => {
        $crate::forward_backend!(@@ $inner subscribe(target: $crate::LockTarget, until) $crate::WakeStream);
    };
    (@ $inner:ident extend) => {
        fn extend<'a, 'b, 'r>(
            &'a self,
            batch: &'b [$crate::ExtendRequest],
            deadline: $crate::forward::Instant,
        ) -> $crate::forward::BoxFuture<
            'r,
            ::std::vec::Vec<::std::result::Result<$crate::ExtendOutcome, $crate::BackendError>>,
        >
        where
            'a: 'r,
            'b: 'r,
            Self: 'r,
        {
            self.$inner.extend(batch, deadline)
        }
    };
    (@ $inner:ident scan) => {
        fn scan<'a, 'b, 'r>(
            &'a self,
            prefix: &'b str,
            cursor: ::std::option::Option<$crate::ScanCursor>,
            deadline: $crate::forward::Instant,
        ) -> $crate::forward::BoxFuture<'r, ::std::result::Result<$crate::LockPage, $crate::BackendError>>
        where
            'a: 'r,
            'b: 'r,
            Self: 'r,
        {
            self.$inner.scan(prefix, cursor, deadline)
        }
    };
    (@ $inner:ident diagnose) => {
        fn diagnose<'a, 'r>(
            &'a self,
            deadline: $crate::forward::Instant,
        ) -> $crate::forward::BoxFuture<'r, ::std::result::Result<$crate::Diagnosis, $crate::BackendError>>
        where
            'a: 'r,
            Self: 'r,
        {
            self.$inner.diagnose(deadline)
        }
    };
    (@ $inner:ident close) => {
        fn close<'a, 'r>(&'a self) -> $crate::forward::BoxFuture<'r, ()>
        where
            'a: 'r,
            Self: 'r,
        {
            self.$inner.close()
        }
    };
    (@@ $inner:ident $method:ident($argument:ident: $type:ty $(, $until:ident)?) $answer:ty) => {
        fn $method<'a, 'b, 'r>(
            &'a self,
            $argument: &'b $type,
            $($until: $crate::forward::Instant,)?
        ) -> $crate::forward::BoxFuture<'r, ::std::result::Result<$answer, $crate::BackendError>>
        where
            'a: 'r,
            'b: 'r,
            Self: 'r,
        {
            self.$inner.$method($argument $(, $until)?)
        }
    };
}

pub use tokio::time::Instant;

/// What an async method of a backend returns.
pub type BoxFuture<'r, T> = std::pin::Pin<Box<dyn std::future::Future<Output = T> + Send + 'r>>;
