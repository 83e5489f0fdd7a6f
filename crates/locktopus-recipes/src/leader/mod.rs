//! Leader election: one of many candidates leads at a time.
//!
//! The leader holds the mutex of the election's name, and candidates wait in its queue. It is a
//! mutex because a leader never enters it twice, and because every backend has mutexes.

mod incumbent;
mod leadership;

use std::time::Duration;

pub use incumbent::Incumbent;
pub use leadership::Leadership;
use locktopus_core::{CancellationToken, Lease, LockError, LockRequest, Locktopus, Owner, RawName};
use tokio::time::Instant;

use crate::pauses::{Pauses, may_pass, unless_cancelled};

/// A term that lasted longer went well. Its end is no reason to hesitate.
const STABLE_TERM: Duration = Duration::from_secs(5);

/// An election: of all candidates under its name, one leads at a time. Cheap to clone. Each
/// campaign is a candidate of its own.
///
/// The leader holds the [mutex](Locktopus::mutex) of that name. So commands that show or break
/// locks show and break leaders too.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let locks = locktopus::connect("memory:").await?;
/// use locktopus::LeaderElection;
/// let scheduled = LeaderElection::new(&locks, "scheduler").run(|lease| async move {
///     // One instance at a time is here. Send the token with each write.
///     lease.token()
/// }).await?;
/// assert!(scheduled.is_some());
/// # Ok(()) }
/// ```
///
/// **One leader at a time, as far as a lease promises it**: while the backend keeps its data
/// ([`SafetyMode`](locktopus_core::SafetyMode) says what a failover does), and as long as the
/// leader stops when it learns of the loss. A leader that pauses between checking its
/// [`Leadership`] and writing may write late. Pass its [token](Leadership::token) on to the target
/// of the write, which should refuse smaller tokens: tokens grow from term to term.
///
/// If a leader crashes or is cut off, the next candidate follows when its lease has ended (30 s
/// unless [set](Self::renewed_lease)). If it [resigns](Leadership::resign), the next one follows at
/// once. A leader that is cut off knows earlier, by its own clock.
#[derive(Debug, Clone)]
#[must_use = "an election does nothing until somebody campaigns"]
pub struct LeaderElection {
    locks: Locktopus,
    request: LockRequest,
    cancel: Option<CancellationToken>,
}

impl LeaderElection {
    /// Names the election. All candidates under this name on the same backend take part. Sends
    /// nothing.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// use locktopus::LeaderElection;
    /// let election = LeaderElection::new(&locks, "scheduler");
    /// election.campaign().await?.resign().await?;
    /// # Ok(()) }
    /// ```
    pub fn new(locks: &Locktopus, name: impl Into<RawName>) -> Self {
        Self {
            locks: locks.clone(),
            // A cached lease would delay the next candidate.
            request: locks.mutex(name).lease_cache(Duration::ZERO),
            cancel: None,
        }
    }

    /// Sets the lease of the leader, renewed after a third of that time. After a crash, there is no
    /// leader for this long. Default:
    /// [`LocktopusBuilder::renewed_lease`](locktopus_core::LocktopusBuilder::renewed_lease), 30 s.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::connect("memory:").await?;
    /// # use locktopus::LeaderElection;
    /// let election =
    ///     LeaderElection::new(&locks, "scheduler").renewed_lease(Duration::from_secs(6));
    /// let leadership = election.campaign().await?;
    /// assert!(leadership.remaining() <= Duration::from_secs(6));
    /// # Ok(()) }
    /// ```
    pub fn renewed_lease(mut self, lease: Duration) -> Self {
        self.request = self.request.renewed_lease(lease);
        self
    }

    /// Ends each term after this long, so that leadership rotates. Default: terms have no limit.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::connect("memory:").await?;
    /// # use locktopus::LeaderElection;
    /// use locktopus::LostCause;
    /// let election = LeaderElection::new(&locks, "scheduler").max_term(Duration::from_millis(30));
    /// assert_eq!(election.campaign().await?.leading().await, LostCause::MaxHold);
    /// # Ok(()) }
    /// ```
    pub fn max_term(mut self, term: Duration) -> Self {
        self.request = self.request.max_hold(term);
        self
    }

    /// When you cancel this token, campaigning stops and [`run`](Self::run) ends, even while it
    /// leads. A [`Leadership`] is not affected.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// # use locktopus::LeaderElection;
    /// use locktopus::{CancellationToken, LockError};
    /// let _leads = LeaderElection::new(&locks, "scheduler").campaign().await?;
    /// let stop = CancellationToken::new();
    /// stop.cancel();
    /// let ended = LeaderElection::new(&locks, "scheduler").cancel_on(stop).campaign().await;
    /// assert!(matches!(ended, Err(LockError::Cancelled { .. })));
    /// # Ok(()) }
    /// ```
    pub fn cancel_on(mut self, token: CancellationToken) -> Self {
        self.request = self.request.cancel_on(token.clone());
        self.cancel = Some(token);
        self
    }

    /// Waits until this candidate is the leader.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// # use locktopus::LeaderElection;
    /// let election = LeaderElection::new(&locks, "scheduler");
    /// let leadership = election.campaign().await?;
    /// assert!(election.try_campaign().await?.is_none());
    /// leadership.resign().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The same as for [`LockRequest::acquire`]: [`LockError::Cancelled`] and
    /// [`LockError::ShutDown`] if the campaign was ended, [`LockError::Backend`] if the backend
    /// could not be reached for
    /// [`tolerate_outage`](locktopus_core::LocktopusBuilder::tolerate_outage) (10 s).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future withdraws the candidate, which loses its place in the
    /// queue. If it was just elected, it resigns in the background.
    pub async fn campaign(&self) -> Result<Leadership, LockError> {
        self.candidate().acquire().await.map(Leadership::new)
    }

    /// Becomes the leader if there is neither a leader nor a candidate. Otherwise returns `None`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// # use locktopus::LeaderElection;
    /// let election = LeaderElection::new(&locks, "scheduler");
    /// if let Some(leadership) = election.try_campaign().await? {
    ///     leadership.resign().await?;
    /// }
    /// # assert!(election.observe().await?.is_none());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The same as for [`LockRequest::try_acquire`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe, like [`campaign`](Self::campaign).
    pub async fn try_campaign(&self) -> Result<Option<Leadership>, LockError> {
        let elected = self.candidate().try_acquire().await?;
        Ok(elected.map(Leadership::new))
    }

    /// Asks the backend who leads now. `None` if there is no leader. Takes nothing.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// # use locktopus::LeaderElection;
    /// let election = LeaderElection::new(&locks, "scheduler");
    /// assert!(election.observe().await?.is_none());
    /// let leadership = election.campaign().await?;
    /// let incumbent = election.observe().await?.expect("a leader");
    /// assert_eq!(Some(incumbent.mark), leadership.mark());
    /// assert!(incumbent.is_here);
    /// leadership.resign().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Name`], and [`LockError::Backend`] if the backend failed or cannot inspect
    /// locks.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it only reads.
    pub async fn observe(&self) -> Result<Option<Incumbent>, LockError> {
        let state = self.request.clone().inspect().await?;
        Ok(Incumbent::of(&state, &self.locks.held_locks()))
    }

    /// Campaigns, does `work` while it leads, and campaigns again whenever leadership is lost,
    /// until the work is done.
    ///
    /// The work gets its lease, with a new token in each term. If leadership is lost, the work is
    /// dropped at its current await point, before it takes another step, and the next term calls
    /// `work` again. If the work spawned tasks, it must end them itself: [`Lease::lost_token`]
    /// tells them. When the work returns, the leader resigns, and its output is returned.
    ///
    /// After a loss, and after a temporary error of the backend, it waits before the next campaign:
    /// 50 to 100 ms at first, then doubling up to 1 to 2 s. Each such error is logged as a warning.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// use locktopus::{CancellationToken, LeaderElection, LockError};
    /// let stop = CancellationToken::new();
    /// # stop.cancel();
    /// let election = LeaderElection::new(&locks, "scheduler").cancel_on(stop);
    /// let ended = election.run(|lease| async move {
    ///     loop {
    ///         lease.ensure_valid()?; // right before each side effect
    ///         // ... hand out work under lease.token() ...
    ///         tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    /// #       if false { return Ok::<(), LockError>(()) }
    ///     }
    /// }).await;
    /// assert!(matches!(ended, Err(LockError::Cancelled { .. })));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Cancelled`] and [`LockError::ShutDown`] when you end it. Errors that do not go
    /// away on their own: [`LockError::Name`]; [`LockError::Option`]; [`LockError::Backend`] for a
    /// missing permission, a name in use as another kind, or something that the backend lacks.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work at its current await point. The candidate withdraws or
    /// resigns in the background.
    pub async fn run<F, Fut>(&self, mut work: F) -> Result<Fut::Output, LockError>
    where
        F: FnMut(Lease) -> Fut,
        Fut: Future,
    {
        let mut pauses = Pauses::new();
        loop {
            let error = match self.campaign().await {
                Ok(leadership) => {
                    let elected = Instant::now();
                    let term = leadership.while_leading(work(leadership.lease()));
                    let ended = unless_cancelled(self.cancel.as_ref(), term).await;
                    match ended {
                        Some(Ok(output)) => {
                            leadership.resign_or_warn().await;
                            return Ok(output);
                        }
                        Some(Err(error)) => {
                            if elected.elapsed() > STABLE_TERM {
                                pauses.reset();
                            }
                            error
                        }
                        None => {
                            leadership.resign_or_warn().await;
                            return Err(self.cancelled()?);
                        }
                    }
                }
                Err(error) => error,
            };
            if !may_pass(&error) {
                return Err(error);
            }
            tracing::warn!(%error, "not leading, and will campaign again");
            if unless_cancelled(self.cancel.as_ref(), pauses.wait())
                .await
                .is_none()
            {
                return Err(self.cancelled()?);
            }
        }
    }

    fn cancelled(&self) -> Result<LockError, LockError> {
        let target = self.request.target()?;
        Ok(LockError::Cancelled { target })
    }

    /// The request of a new candidate, even in the scope of an owner.
    fn candidate(&self) -> LockRequest {
        self.request.clone().owner(&Owner::new())
    }
}
