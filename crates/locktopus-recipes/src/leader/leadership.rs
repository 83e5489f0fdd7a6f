//! A term of leadership.

use std::future::Future;
use std::time::Duration;

use locktopus_core::{CancellationToken, FencingToken, Lease, LockError, LockGuard, LostCause};
use locktopus_fence::{Fence, HolderMark};

/// Leadership, returned by [`LeaderElection::campaign`](crate::LeaderElection::campaign).
///
/// **Dropping it resigns in the background**, as dropping a [`LockGuard`] releases. Call
/// [`resign`](Self::resign) to learn whether this was the leader to the end.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let locks = locktopus::connect("memory:").await?;
/// # use locktopus::LeaderElection;
/// let leadership = LeaderElection::new(&locks, "scheduler").campaign().await?;
/// let fence = leadership.token(); // let the target of your writes refuse smaller tokens
/// # tokio::spawn({
/// #     let locks = locks.clone();
/// #     async move { locks.mutex("scheduler").force_release("example").await }
/// # });
/// tokio::select! {
///     cause = leadership.leading() => println!("no longer the leader: {cause}"),
///     () = std::future::pending() => { /* the leader's work */ }
/// }
/// assert!(!leadership.is_leading());
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "if unused the leader resigns immediately"]
#[clippy::has_significant_drop]
pub struct Leadership {
    guard: LockGuard,
}

impl Leadership {
    pub(super) fn new(guard: LockGuard) -> Self {
        Self { guard }
    }

    /// Waits until this is no longer the leader, and returns the reason. It returns when the local
    /// deadline passes at the latest, even if the network fails, and at once if leadership is
    /// already lost.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// # use locktopus::LeaderElection;
    /// use locktopus::LostCause;
    /// let leadership = LeaderElection::new(&locks, "scheduler").campaign().await?;
    /// locks.mutex("scheduler").force_release("example").await?;
    /// assert!(matches!(leadership.leading().await, LostCause::Evicted { .. }));
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn leading(&self) -> LostCause {
        self.guard.lost().await
    }

    /// Whether this is still the leader, by the clock and not by a flag. Call it right before each
    /// side effect.
    #[must_use]
    pub fn is_leading(&self) -> bool {
        self.guard.ensure_valid().is_ok()
    }

    /// Checks that this is still the leader.
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] with the cause.
    pub fn ensure_valid(&self) -> Result<(), LockError> {
        self.guard.ensure_valid()
    }

    /// The fencing token of this term, greater than those of all earlier terms. `None` on backends
    /// without tokens.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// # use locktopus::LeaderElection;
    /// let leadership = LeaderElection::new(&locks, "scheduler").campaign().await?;
    /// leadership.ensure_valid()?;
    /// assert_eq!(leadership.fence().map(|fence| fence.token()), leadership.token());
    /// assert_eq!(leadership.lease().token(), leadership.token());
    /// assert!(leadership.mark().is_some() && !leadership.remaining().is_zero());
    /// let lost = leadership.lost_token();
    /// leadership.resign().await?;
    /// assert!(lost.is_cancelled());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn token(&self) -> Option<FencingToken> {
        self.guard.token()
    }

    /// The token bound to the election and this leader. See [`Lease::fence`].
    #[must_use]
    pub fn fence(&self) -> Option<Fence> {
        self.guard.fence()
    }

    /// The mark of this leader, as others see it: [`Incumbent::mark`](crate::Incumbent::mark).
    /// `None` once it no longer leads.
    #[must_use]
    pub fn mark(&self) -> Option<HolderMark> {
        self.is_leading()
            .then(|| HolderMark::of(self.guard.owner_id()))
    }

    /// How long you may trust this without another renewal. Zero once it no longer leads.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.guard.remaining()
    }

    /// A view of this term's lease, for tasks that work for the leader.
    #[must_use]
    pub fn lease(&self) -> Lease {
        self.guard.lease()
    }

    /// A token that is cancelled when this is no longer the leader. Cancelling it yourself has no
    /// effect on the election.
    #[must_use]
    pub fn lost_token(&self) -> CancellationToken {
        self.guard.lost_token()
    }

    /// Does `work` for as long as this leads. When that ends, the work is dropped at its current
    /// await point, before it takes another step.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// # use locktopus::LeaderElection;
    /// let leadership = LeaderElection::new(&locks, "scheduler").campaign().await?;
    /// let handed_out = leadership.while_leading(async { 3 }).await?;
    /// assert_eq!(handed_out, 3);
    /// leadership.resign().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] if leadership was lost before the work was done.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work at its current await point. Leadership is not affected.
    pub async fn while_leading<F: Future>(&self, work: F) -> Result<F::Output, LockError> {
        self.lease().while_held(work).await
    }

    /// Resigns, so that the next candidate leads at once, and waits for the answer.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// # use locktopus::LeaderElection;
    /// let election = LeaderElection::new(&locks, "scheduler");
    /// let first = election.campaign().await?;
    /// let next = tokio::spawn({
    ///     let election = election.clone();
    ///     async move { election.campaign().await }
    /// });
    /// first.resign().await?;
    /// assert!(next.await??.is_leading());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] if leadership was already lost: any work since then may have overlapped
    /// with the next leader. [`LockError::Backend`] if the backend gave no definite answer. Then
    /// resigning continues in the background, and the lease ends in any case.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: if the future is dropped, resigning continues in the background.
    pub async fn resign(self) -> Result<(), LockError> {
        self.guard.release().await
    }

    /// Resigns, for callers that can do no more about an error than log it.
    pub(super) async fn resign_or_warn(self) {
        if let Err(error) = self.resign().await {
            tracing::warn!(%error, "the leader's work has ended, but resigning failed");
        }
    }
}
