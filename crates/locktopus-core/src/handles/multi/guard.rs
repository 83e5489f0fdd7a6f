//! Locks held together, and lost together.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use futures_util::future::{join_all, select_all};
use locktopus_contract::{FencingToken, LockName, LockTarget, lock};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::acquired_member::AcquiredMember;
use crate::engine::error::{LockError, LostCause};
use crate::handles::guard::LockGuard;
use crate::handles::lease::Lease;

/// One of several locks: its backend and its name.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let locks = locktopus::connect("memory:").await?;
/// let both = locks.multi(["b", "a"]).acquire().await?;
/// let names: Vec<_> = both.members().map(|(member, _)| member.name.as_str()).collect();
/// assert_eq!(names, ["a", "b"]); // in the order in which they are taken
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct MemberName {
    /// The backend's label or, without one, its description.
    pub backend: Arc<str>,
    /// The lock's name, namespace included.
    pub name: LockName,
}

/// Several locks that are held together. Made by [`MultiLock::acquire`](crate::MultiLock::acquire).
///
/// They are valid as long as all of them are. When one is lost, the others are released at once,
/// even if you do not check. Dropping the guard releases all of them in the background.
/// [`release`](Self::release) waits for it and tells you whether they were held to the end.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let locks = locktopus::connect("memory:").await?;
/// let both = locks.multi(["account:1", "account:2"]).acquire().await?;
/// for (member, token) in both.tokens() {
///     println!("{member}: {token:?}");
/// }
/// assert!(both.valid_until() > tokio::time::Instant::now() && !both.remaining().is_zero());
/// let lost = both.lost_token();
/// both.ensure_valid()?; // right before each side effect
/// both.release().await?;
/// assert!(lost.is_cancelled());
/// # Ok(()) }
/// ```
#[must_use = "if unused the locks are released again immediately"]
#[clippy::has_significant_drop]
pub struct MultiGuard {
    shared: Arc<Shared>,
}

struct Shared {
    members: Vec<HeldMember>,
    /// Taken out by the first release, drop or loss.
    guards: Mutex<Option<Vec<LockGuard>>>,
    loss: OnceLock<(LockTarget, LostCause)>,
    ended: CancellationToken,
}

struct HeldMember {
    name: MemberName,
    lease: Lease,
}

impl MultiGuard {
    pub(super) fn new(taken: Vec<AcquiredMember>) -> Self {
        let mut members = Vec::with_capacity(taken.len());
        let mut guards = Vec::with_capacity(taken.len());
        let first = taken.first().map(|lock| Arc::clone(lock.guard.services()));
        for lock in &taken {
            lock.hold_at_least();
        }
        for AcquiredMember {
            backend,
            guard,
            lease,
            ..
        } in taken
        {
            let name = MemberName {
                backend,
                name: lease.name().clone(),
            };
            members.push(HeldMember { name, lease });
            guards.push(guard);
        }
        let shared = Arc::new(Shared {
            members,
            guards: Mutex::new(Some(guards)),
            loss: OnceLock::new(),
            ended: CancellationToken::new(),
        });
        if let Some(services) = first {
            let watched = Arc::downgrade(&shared);
            services.in_background(None, move |_| {
                let watched = watched.upgrade();
                async move {
                    let Some(watched) = watched else { return };
                    tokio::select! {
                        biased;
                        () = watched.ended.cancelled() => {}
                        _ = watched.first_loss() => {}
                    }
                }
            });
        }
        Self { shared }
    }

    /// The fencing token of each lock; `None` for readers, permits and single-key mutexes. Send the
    /// token of the lock that protects the resource.
    #[must_use]
    pub fn tokens(&self) -> BTreeMap<MemberName, Option<FencingToken>> {
        let members = self.members();
        members
            .map(|(name, lease)| (name.clone(), lease.token()))
            .collect()
    }

    /// The locks, in the order of acquisition.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let both = locks.multi(["b", "a"]).acquire().await?;
    /// for (member, lease) in both.members() {
    ///     assert_eq!(member.name, *lease.name());
    /// }
    /// # Ok(()) }
    /// ```
    pub fn members(&self) -> impl Iterator<Item = (&MemberName, &Lease)> {
        let members = self.shared.members.iter();
        members.map(|member| (&member.name, &member.lease))
    }

    /// The local deadline: until then all locks are known to be held. Renewal moves it.
    #[must_use]
    pub fn valid_until(&self) -> Instant {
        let ends = self.members().map(|(_, lease)| lease.valid_until());
        ends.min().unwrap_or_else(Instant::now)
    }

    /// The time left until [`valid_until`](Self::valid_until); zero once any lock is lost.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        let left = self.members().map(|(_, lease)| lease.remaining());
        left.min().unwrap_or_default()
    }

    /// Checks that all locks are still known to be held. See [`Lease::ensure_valid`].
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] with the lock that was lost first, and its cause.
    pub fn ensure_valid(&self) -> Result<(), LockError> {
        for (index, member) in self.shared.members.iter().enumerate() {
            if let Err(LockError::Lost { cause, .. }) = member.lease.ensure_valid() {
                self.shared.lose(index, cause);
            }
        }
        match self.shared.loss.get().cloned() {
            None => Ok(()),
            Some((target, cause)) => Err(LockError::Lost { target, cause }),
        }
    }

    /// Waits until one of the locks is lost, and returns which one and why. All others are then
    /// released, with cause [`LostCause::MemberLost`].
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// use locktopus::LostCause;
    /// let both = locks.multi(["account:1", "account:2"]).acquire().await?;
    /// locks.lock("account:1").force_release("example").await?;
    /// let (member, cause) = both.lost().await;
    /// assert_eq!(member.name.as_str(), "account:1");
    /// assert!(matches!(cause, LostCause::Evicted { .. }));
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn lost(&self) -> (MemberName, LostCause) {
        let (target, cause) = self.shared.first_loss().await;
        let lost = |member: &&HeldMember| *member.lease.target() == target;
        let member = self.shared.members.iter().find(lost);
        let name = member.map_or_else(
            || MemberName {
                backend: "".into(),
                name: target.name().clone(),
            },
            |member| member.name.clone(),
        );
        (name, cause)
    }

    /// A token that is cancelled when the hold ends in any way. Cancelling it has no effect on the
    /// locks.
    #[must_use]
    pub fn lost_token(&self) -> CancellationToken {
        self.shared.ended.child_token()
    }

    /// Releases all locks and waits for the answers.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let both = locks.multi(["account:1", "account:2"]).acquire().await?;
    /// both.release().await?;
    /// assert!(locks.lock("account:1").try_acquire().await?.is_some());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// All errors that occurred: see [`LockGuard::release`]. A release that failed is tried again
    /// in the background.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: if the future is dropped, the release continues in the background.
    pub async fn release(self) -> Result<(), MultiReleaseError> {
        let Some(guards) = self.shared.end() else {
            let (target, cause) = self.shared.first_loss().await;
            let errors = vec![LockError::Lost { target, cause }];
            return Err(MultiReleaseError { errors });
        };
        let released = join_all(guards.into_iter().map(LockGuard::release)).await;
        let errors: Vec<_> = released.into_iter().filter_map(Result::err).collect();
        if errors.is_empty() {
            Ok(())
        } else {
            Err(MultiReleaseError { errors })
        }
    }
}

impl Drop for MultiGuard {
    fn drop(&mut self) {
        drop(self.shared.end());
    }
}

impl Shared {
    /// Ends the hold. Only the first caller gets the guards.
    fn end(&self) -> Option<Vec<LockGuard>> {
        let guards = lock(&self.guards).take();
        self.ended.cancel();
        guards
    }

    /// Waits until a lock is lost, and releases the others.
    async fn first_loss(&self) -> (LockTarget, LostCause) {
        let (cause, index) = first_lost(self.members.iter().map(|member| &member.lease)).await;
        self.lose(index, cause.clone());
        let member = &self.members[index];
        let found = || (member.lease.target().clone(), cause);
        self.loss.get().cloned().unwrap_or_else(found)
    }

    fn lose(&self, index: usize, cause: LostCause) {
        let Some(guards) = lock(&self.guards).take() else {
            return;
        };
        let target = self.members[index].lease.target();
        // Before the others end, so that none of them is taken for the first.
        let _ = self.loss.set((target.clone(), cause));
        for member in &self.members {
            let lock = target.to_string();
            member.lease.turn().end(LostCause::MemberLost { lock });
        }
        self.ended.cancel();
        drop(guards);
    }
}

/// Waits until the first of these leases ends; for ever if there are none.
pub(super) async fn first_lost(leases: impl Iterator<Item = &Lease>) -> (LostCause, usize) {
    let lost: Vec<_> = leases.map(|lease| Box::pin(lease.lost())).collect();
    if lost.is_empty() {
        return std::future::pending().await;
    }
    let (cause, index, _) = select_all(lost).await;
    (cause, index)
}

impl fmt::Display for MemberName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" on {}", self.name, self.backend)
    }
}

impl fmt::Debug for MultiGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let leases: Vec<_> = self.members().map(|(_, lease)| lease).collect();
        f.debug_tuple("MultiGuard").field(&leases).finish()
    }
}

/// Some of several locks were lost before they were released, or could not be released.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let locks = locktopus::connect("memory:").await?;
/// use locktopus::{LockError, MultiReleaseError};
/// let both = locks.multi(["account:1", "account:2"]).acquire().await?;
/// locks.lock("account:1").force_release("example").await?;
/// let error: MultiReleaseError = both.release().await.unwrap_err();
/// assert!(matches!(error.errors(), [LockError::Lost { .. }, ..]));
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct MultiReleaseError {
    errors: Vec<LockError>,
}

impl MultiReleaseError {
    /// All errors that occurred. Never empty.
    #[must_use]
    pub fn errors(&self) -> &[LockError] {
        &self.errors
    }
}

impl fmt::Display for MultiReleaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let errors: Vec<_> = self.errors.iter().map(LockError::to_string).collect();
        f.write_str(&errors.join("; "))
    }
}

impl std::error::Error for MultiReleaseError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // The first error's text is part of this one's, so the chain continues with its source.
        self.errors.first().and_then(std::error::Error::source)
    }
}
