//! A backend that wraps another one.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::backend::{BackendInfo, LockBackend};
use crate::backend_error::BackendError;
use crate::capability::{Counters, Diagnostics, Directory, Groups, Instances, WakeUps};
use crate::kind::LockTarget;
use crate::lock_state::LockState;
use crate::name::NameError;
use crate::request::{
    AcquireAttempt, AttemptOutcome, ExtendOutcome, ExtendRequest, ReleaseOutcome, ReleaseRequest,
};

/// A backend that wraps another one. It names the inner backend and implements only the methods
/// that it changes.
///
/// Everything else is forwarded, capabilities too. If a layer changes what passes through a
/// capability, it implements that trait and returns itself:
/// `self.inner.counters().map(|_| self as _)`. Each layer is a [`LockBackend`]. This trait only
/// helps to write one.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use locktopus::{AcquireAttempt, AttemptOutcome, BackendError, DynBackend, Layer, LockBackend};
/// # use locktopus::Locktopus;
/// # use locktopus::MemoryBackend;
///
/// /// Counts attempts, and forwards everything else.
/// #[derive(Debug)]
/// struct Counting {
///     inner: DynBackend,
///     attempts: AtomicU32,
/// }
///
/// #[async_trait::async_trait]
/// impl Layer for Counting {
///     fn inner(&self) -> &dyn LockBackend {
///         &*self.inner
///     }
///
///     async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
///         self.attempts.fetch_add(1, Ordering::Relaxed);
///         self.inner.attempt(attempt).await
///     }
/// }
///
/// let backend = Counting { inner: Arc::new(MemoryBackend::new()), attempts: AtomicU32::new(0) };
/// let backend = Arc::new(backend);
/// let locks = Locktopus::builder_dyn(backend.clone()).build()?;
/// locks.lock("invoice:42").acquire().await?.release().await?;
/// assert_eq!(backend.attempts.load(Ordering::Relaxed), 1);
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// The same as for [`LockBackend`].
///
/// # Cancel safety
///
/// The same as for [`LockBackend`].
#[async_trait]
pub trait Layer: fmt::Debug + Send + Sync + 'static {
    /// The wrapped backend.
    fn inner(&self) -> &dyn LockBackend;

    /// See [`LockBackend::info`].
    fn info(&self) -> &BackendInfo {
        self.inner().info()
    }

    /// See [`LockBackend::check`].
    fn check(&self, target: &LockTarget) -> Result<(), NameError> {
        self.inner().check(target)
    }

    /// See [`LockBackend::shard`].
    fn shard(&self, target: &LockTarget) -> u32 {
        self.inner().shard(target)
    }

    /// See [`LockBackend::attempt`].
    async fn attempt(&self, attempt: &AcquireAttempt) -> Result<AttemptOutcome, BackendError> {
        self.inner().attempt(attempt).await
    }

    /// See [`LockBackend::release`].
    async fn release(&self, request: &ReleaseRequest) -> Result<ReleaseOutcome, BackendError> {
        self.inner().release(request).await
    }

    /// See [`LockBackend::extend`].
    async fn extend(
        &self,
        batch: &[ExtendRequest],
        deadline: Instant,
    ) -> Vec<Result<ExtendOutcome, BackendError>> {
        self.inner().extend(batch, deadline).await
    }

    /// See [`LockBackend::inspect`].
    async fn inspect(
        &self,
        target: &LockTarget,
        deadline: Instant,
    ) -> Result<LockState, BackendError> {
        self.inner().inspect(target, deadline).await
    }

    /// See [`LockBackend::wake_ups`].
    fn wake_ups(&self) -> Option<&dyn WakeUps> {
        self.inner().wake_ups()
    }

    /// See [`LockBackend::counters`].
    fn counters(&self) -> Option<&dyn Counters> {
        self.inner().counters()
    }

    /// See [`LockBackend::groups`].
    fn groups(&self) -> Option<&dyn Groups> {
        self.inner().groups()
    }

    /// See [`LockBackend::directory`].
    fn directory(&self) -> Option<&dyn Directory> {
        self.inner().directory()
    }

    /// See [`LockBackend::instances`].
    fn instances(&self) -> Option<&dyn Instances> {
        self.inner().instances()
    }

    /// See [`LockBackend::diagnosis`].
    fn diagnosis(&self) -> Option<&dyn Diagnostics> {
        self.inner().diagnosis()
    }

    /// See [`LockBackend::close`].
    async fn close(&self) {
        self.inner().close().await;
    }
}

/// The future of an async method.
type Boxed<'r, T> = Pin<Box<dyn Future<Output = T> + Send + 'r>>;

/// Written out as `async_trait` would, without a second box around each future.
impl<L: Layer> LockBackend for L {
    fn info(&self) -> &BackendInfo {
        Layer::info(self)
    }

    fn check(&self, target: &LockTarget) -> Result<(), NameError> {
        Layer::check(self, target)
    }

    fn shard(&self, target: &LockTarget) -> u32 {
        Layer::shard(self, target)
    }

    fn attempt<'a, 'b, 'r>(
        &'a self,
        attempt: &'b AcquireAttempt,
    ) -> Boxed<'r, Result<AttemptOutcome, BackendError>>
    where
        'a: 'r,
        'b: 'r,
        Self: 'r,
    {
        Layer::attempt(self, attempt)
    }

    fn release<'a, 'b, 'r>(
        &'a self,
        request: &'b ReleaseRequest,
    ) -> Boxed<'r, Result<ReleaseOutcome, BackendError>>
    where
        'a: 'r,
        'b: 'r,
        Self: 'r,
    {
        Layer::release(self, request)
    }

    fn extend<'a, 'b, 'r>(
        &'a self,
        batch: &'b [ExtendRequest],
        deadline: Instant,
    ) -> Boxed<'r, Vec<Result<ExtendOutcome, BackendError>>>
    where
        'a: 'r,
        'b: 'r,
        Self: 'r,
    {
        Layer::extend(self, batch, deadline)
    }

    fn inspect<'a, 'b, 'r>(
        &'a self,
        target: &'b LockTarget,
        deadline: Instant,
    ) -> Boxed<'r, Result<LockState, BackendError>>
    where
        'a: 'r,
        'b: 'r,
        Self: 'r,
    {
        Layer::inspect(self, target, deadline)
    }

    fn wake_ups(&self) -> Option<&dyn WakeUps> {
        Layer::wake_ups(self)
    }

    fn counters(&self) -> Option<&dyn Counters> {
        Layer::counters(self)
    }

    fn groups(&self) -> Option<&dyn Groups> {
        Layer::groups(self)
    }

    fn directory(&self) -> Option<&dyn Directory> {
        Layer::directory(self)
    }

    fn instances(&self) -> Option<&dyn Instances> {
        Layer::instances(self)
    }

    fn diagnosis(&self) -> Option<&dyn Diagnostics> {
        Layer::diagnosis(self)
    }

    fn close<'a, 'r>(&'a self) -> Boxed<'r, ()>
    where
        'a: 'r,
        Self: 'r,
    {
        Layer::close(self)
    }
}
