//! Requests: an acquisition that is described but not yet sent, and the ways to send it.

mod admin;
mod adopt;
mod checked;
mod enter;
mod multi;
mod name;
mod options;
mod run;

pub(crate) use adopt::guard_of_grant;
use locktopus_contract::LockKind;
pub(crate) use name::RequestName;
use options::RequestOptions;
pub(crate) use options::WaitLimit;

use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use crate::engine::acquisition::Wait;
use crate::engine::error::LockError;
use crate::engine::holding::services::Services;
use crate::handles::any_guard::AnyGuard;
use crate::handles::guard::LockGuard;

/// A request for a lock. [`Locktopus::lock`](crate::Locktopus::lock) and its siblings make one;
/// nothing happens until you await one of its asynchronous methods. Awaiting the request itself is
/// [`acquire`](Self::acquire).
///
/// Without options, the request queues for as long as it takes, and the lock is held by a lease of
/// 30 s that is renewed every 10 s.
///
/// `G` is the guard it turns into: [`LockGuard`], or [`WriteGuard`](crate::WriteGuard) for the
/// exclusive half of a read-write lock.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// # let locks = locktopus::connect("memory:").await?;
/// let invoice = locks.lock("invoice:42").wait_at_most(Duration::from_secs(5));
/// let guard = invoice.clone().await?; // as `.acquire().await?`
/// assert!(invoice.try_acquire().await?.is_none());
/// guard.release().await?;
/// # Ok(()) }
/// ```
#[must_use = "a lock request does nothing until `acquire`, `try_acquire` or `run` is awaited"]
pub struct LockRequest<G = LockGuard> {
    services: Arc<Services>,
    name: RequestName,
    kind: LockKind,
    permits: u32,
    options: RequestOptions,
    guard: PhantomData<fn() -> G>,
}

impl<G: AnyGuard> LockRequest<G> {
    pub(crate) fn new(services: Arc<Services>, name: RequestName, kind: LockKind) -> Self {
        Self {
            services,
            name,
            kind,
            permits: 1,
            options: RequestOptions::default(),
            guard: PhantomData,
        }
    }

    /// Takes the lock, waiting for it if necessary.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::connect("memory:").await?;
    /// let guard = locks.lock("invoice:42").acquire().await?;
    /// let second = locks.lock("invoice:42").wait_at_most(Duration::from_millis(20)).acquire().await;
    /// assert!(second.is_err_and(|error| error.is_busy()));
    /// guard.release().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Name`] and [`LockError::Option`], before anything is sent.
    /// [`LockError::WaitTimeout`], [`LockError::Cancelled`] and [`LockError::ShutDown`], if waiting
    /// ended without the lock.
    ///
    /// [`LockError::Backend`] at once if the backend refuses, for example because the name is in
    /// use as another kind ([`LockError::other_kind`]). If the backend cannot be reached, the same
    /// error comes after ten seconds
    /// ([`LocktopusBuilder::tolerate_outage`](crate::LocktopusBuilder::tolerate_outage)).
    ///
    /// [`LockError::NotReentrant`] or [`LockError::UpgradeRefused`] instead of a deadlock, if the
    /// owner already holds this mutex, or reads what it wants to write. [`LockError::Lost`] if the
    /// owner's earlier hold of this lock is lost and not yet dropped.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future leaves no lock, no waiter and no task behind, and gives up
    /// its place in the queue. If an attempt under way still takes the lock, it is given back in
    /// the background.
    pub fn acquire(self) -> impl Future<Output = Result<G, LockError>> + use<G> {
        let wait = |limit: Option<_>| limit.map_or(Wait::Forever, WaitLimit::to_wait);
        self.enter(wait, |taken| taken)
    }

    /// Takes the lock if it is free right now and has no waiters; `None` otherwise.
    ///
    /// Makes one attempt, so [`wait_at_most`](Self::wait_at_most) and the strategy have no effect.
    /// [`UnlessBusy`](crate::UnlessBusy) gives the other ways to acquire the same shape.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let Some(guard) = locks.lock("nightly").try_acquire().await? else {
    ///     return Ok(()); // another instance is doing it
    /// };
    /// assert!(locks.lock("nightly").try_acquire().await?.is_none());
    /// guard.release().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), except that an unreachable backend is an error at once.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe, as [`acquire`](Self::acquire).
    pub fn try_acquire(self) -> impl Future<Output = Result<Option<G>, LockError>> + use<G> {
        self.enter(|_| Wait::Not, Some)
    }
}

impl<G: AnyGuard> IntoFuture for LockRequest<G> {
    type Output = Result<G, LockError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.acquire())
    }
}

/// Not derived, because that would ask for guards that can be cloned.
impl<G> Clone for LockRequest<G> {
    fn clone(&self) -> Self {
        Self {
            services: Arc::clone(&self.services),
            name: self.name.clone(),
            kind: self.kind.clone(),
            permits: self.permits,
            options: self.options.clone(),
            guard: PhantomData,
        }
    }
}

impl<G> fmt::Debug for LockRequest<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockRequest")
            .field("name", &self.name)
            .field("kind", &self.kind.as_str())
            .field("permits", &self.permits)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
