//! Owners, who may enter a reentrant lock again.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, Weak};

use locktopus_contract::{LockKind, LockTarget, lock};

use crate::engine::holding::hold::Hold;
use crate::engine::holding::services::Services;
use crate::engine::holding::turn::Turn;
use crate::handles::guard::LockGuard;

/// An owner of locks that may enter its reentrant locks again.
///
/// Re-entry belongs to this handle, not to a thread or a task. It is cheap to clone: pass it to
/// everything that works on the owner's behalf. Acquiring a lock that the same owner holds returns
/// another guard on the same lease at once, without asking the backend. Only a longer
/// [`fixed_lease`](crate::LockRequest::fixed_lease) asks the backend, to extend the lease.
///
/// After a loss, entering again fails with [`LockError::Lost`](crate::LockError::Lost) until the
/// owner has dropped all guards of the lost lease.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use locktopus_core::{Locktopus, Owner};
/// use locktopus_memory::MemoryBackend;
/// let locks = Locktopus::builder(MemoryBackend::new()).build()?;
/// let me = Owner::new();
/// let outer = locks.lock("job").owner(&me).acquire().await?;
/// let inner = locks.lock("job").owner(&me).acquire().await?;
/// assert_eq!(inner.hold_count(), 2);
/// inner.release().await?;
/// outer.release().await?;
/// # Ok(()) }
/// ```
///
/// Instead of passing the handle, run the work in its [scope](Self::scope).
#[derive(Debug, Clone, Default)]
pub struct Owner {
    held: Arc<Mutex<HashMap<HeldKey, HeldCell>>>,
}

tokio::task_local! {
    static CURRENT: Owner;
}

/// A lock of one `Locktopus`; both halves of a read-write lock have the same key.
pub(crate) type HeldKey = (usize, LockTarget);

/// An owner's entry for one lock. It is locked while the owner acquires that lock, so that two of
/// the owner's tasks do not race for it.
pub(crate) type HeldCell = Arc<tokio::sync::Mutex<HeldByOwner>>;

/// The turns that an owner holds of one lock. It has both halves of a read-write lock, because
/// whether the owner may take one half depends on the other.
#[derive(Debug, Default)]
pub(crate) struct HeldByOwner {
    exclusive: Weak<Turn>,
    read: Weak<Turn>,
}

impl Owner {
    /// A new owner that holds nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs `work` as this owner: requests awaited in it belong to this owner, unless they name
    /// another one. The scope ends with the work and does not reach into tasks spawned by it.
    ///
    /// Futures joined in one scope act as one owner: they enter its reentrant locks together, and
    /// get [`NotReentrant`](crate::LockError::NotReentrant) for its mutexes.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use locktopus_core::{LockError, Locktopus, Owner};
    /// use locktopus_memory::MemoryBackend;
    ///
    /// async fn audit(locks: &Locktopus) -> Result<usize, LockError> {
    ///     // Works with and without the lock held.
    ///     let guard = locks.lock("account:7").acquire().await?;
    ///     Ok(guard.hold_count())
    /// }
    ///
    /// let locks = Locktopus::builder(MemoryBackend::new()).build()?;
    /// Owner::new().scope(async {
    ///     let _guard = locks.lock("account:7").acquire().await?;
    ///     assert_eq!(audit(&locks).await?, 2);
    ///     Ok::<_, LockError>(())
    /// }).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work.
    pub async fn scope<F: Future>(&self, work: F) -> F::Output {
        CURRENT.scope(self.clone(), work).await
    }

    /// The owner in whose [scope](Self::scope) this is called.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use locktopus::Owner;
    /// assert!(Owner::current().is_none());
    /// Owner::new().scope(async { assert!(Owner::current().is_some()) }).await;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Self::clone).ok()
    }

    /// This owner's entry for this lock.
    pub(crate) fn held_cell(&self, services: &Arc<Services>, target: &LockTarget) -> HeldCell {
        let mut held = lock(&self.held);
        // Remove locks that are over and that no acquisition is using.
        held.retain(|_, cell| {
            Arc::strong_count(cell) > 1 || cell.try_lock().is_ok_and(|inside| inside.is_alive())
        });
        Arc::clone(held.entry(Self::key(services, target)).or_default())
    }

    pub(crate) fn key(services: &Arc<Services>, target: &LockTarget) -> HeldKey {
        let whole = match target.kind() {
            LockKind::Read => LockTarget::new(target.name().clone(), LockKind::Write),
            _ => target.clone(),
        };
        (Arc::as_ptr(services) as usize, whole)
    }
}

impl HeldByOwner {
    /// Another guard on the lease that is already held, lost or not.
    pub(crate) fn enter_again(
        &self,
        services: &Arc<Services>,
        kind: &LockKind,
    ) -> Option<LockGuard> {
        let turn = self.half(kind).upgrade()?;
        Hold::join(services, &turn).map(LockGuard::new)
    }

    pub(crate) fn holds(&self, kind: &LockKind) -> bool {
        is_held(self.half(kind))
    }

    pub(crate) fn entered(&mut self, guard: &LockGuard) {
        let turn = Arc::downgrade(guard.turn());
        match guard.target().kind() {
            LockKind::Read => self.read = turn,
            _ => self.exclusive = turn,
        }
    }

    fn half(&self, kind: &LockKind) -> &Weak<Turn> {
        match kind {
            LockKind::Read => &self.read,
            _ => &self.exclusive,
        }
    }

    pub(crate) fn is_alive(&self) -> bool {
        is_held(&self.exclusive) || is_held(&self.read)
    }
}

fn is_held(turn: &Weak<Turn>) -> bool {
    turn.upgrade().is_some_and(|turn| turn.holds() > 0)
}
