//! The leader, seen from outside.

use std::time::Duration;

use locktopus_core::{FencingToken, HeldLock, LockState};
use locktopus_fence::HolderMark;

/// The leader, in the backend's view. Returned by
/// [`LeaderElection::observe`](crate::LeaderElection::observe).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let locks = locktopus::connect("memory:").await?;
/// use locktopus::{Incumbent, LeaderElection};
/// let election = LeaderElection::new(&locks, "scheduler");
/// let leadership = election.campaign().await?;
/// if let Some(Incumbent { mark, candidates, is_here, .. }) = election.observe().await? {
///     assert_eq!((Some(mark), candidates, is_here), (leadership.mark(), 0, true));
/// }
/// leadership.resign().await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Incumbent {
    /// Tells leaders apart. It cannot be used to resign for them.
    pub mark: HolderMark,
    /// The last token of the lock: the leader's, or an earlier leader's in the same process. `None`
    /// on backends without tokens.
    pub last_token: Option<FencingToken>,
    /// What is left of its lease. Renewals change it. `None` if it never ends.
    pub remaining: Option<Duration>,
    /// How many candidates wait in the backend's queue. All candidates of one process may count as
    /// one.
    pub candidates: usize,
    /// Whether this [`Locktopus`](locktopus_core::Locktopus) or a clone of it leads.
    pub is_here: bool,
}

impl Incumbent {
    pub(super) fn of(state: &LockState, held: &[HeldLock]) -> Option<Self> {
        let holder = state.holder()?;
        Some(Self {
            mark: HolderMark::of(&holder.owner),
            last_token: state.last_token,
            remaining: holder.remaining,
            candidates: state.waiters.len(),
            is_here: held
                .iter()
                .any(|lock| lock.lease.owner_id() == &holder.owner),
        })
    }
}
