//! The check at a resource inside this process.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use locktopus_contract::{FencingToken, LockTarget};

use crate::fence::{Fence, FencedLock};
use crate::mark::HolderMark;

/// Guards a resource: turns away holders that have been overtaken.
///
/// It remembers the newest token of each lock. It refuses older ones, and the same one from another
/// holder. Use one gate for each resource: writes through it run one at a time.
///
/// ```
/// use locktopus::{Fence, FenceGate, FencingToken, LockKind, LockName, LockTarget};
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// let target = LockTarget::new(LockName::new("invoice:42")?, LockKind::Reentrant);
/// let fence = |token| Fence::new(&target, FencingToken::new(token).expect("in range"));
/// let (gate, total) = (FenceGate::new(), AtomicU32::new(0));
///
/// gate.with(&fence(8), || total.store(80, Ordering::Relaxed))?;
/// // The previous holder wakes up and writes too.
/// let late = gate.with(&fence(7), || total.store(70, Ordering::Relaxed));
/// assert_eq!(late.unwrap_err().newest().get(), 8);
/// assert_eq!(total.load(Ordering::Relaxed), 80);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A gate forgets everything when its process ends. A resource that outlives the process must store
/// the newest token with its data (`docs/fencing.md`).
#[derive(Debug)]
pub struct FenceGate {
    state: Mutex<GateState>,
    limit: usize,
}

#[derive(Debug, Default)]
struct GateState {
    seen: HashMap<FencedLock, NewestFence>,
    /// The newest token of any forgotten lock, or 0.
    floor: u64,
}

#[derive(Debug, Clone, Copy)]
struct NewestFence {
    token: FencingToken,
    holder: Option<HolderMark>,
}

impl Default for FenceGate {
    fn default() -> Self {
        Self::new()
    }
}

impl FenceGate {
    /// A gate that forgets nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::bounded(usize::MAX)
    }

    /// A gate that remembers about this many locks, at least one, and forgets those with the oldest
    /// tokens.
    ///
    /// A lock that it does not know must then come with a token newer than all forgotten ones. So
    /// the gate still admits no overtaken holder. It may refuse a holder that took its lock long
    /// ago and appears for the first time ([`StaleCause::Forgotten`]). Choose a limit well above
    /// the number of locks held at one time.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use locktopus::FenceGate;
    /// # let locks = locktopus::connect("memory:").await?;
    /// let gate = FenceGate::bounded(10_000);
    /// let guard = locks.lock("invoice:42").acquire().await?;
    /// gate.admit(&guard.fence().expect("a lock has one"))?;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn bounded(locks: usize) -> Self {
        Self {
            state: Mutex::default(),
            limit: locks.max(1),
        }
    }

    /// Checks a fence and remembers it. This does not protect a write that follows, because a newer
    /// holder can come in between. Use it when a new holder first appears, and [`with`](Self::with)
    /// for writes.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// use locktopus::FenceGate;
    /// let gate = FenceGate::new();
    /// let (name, fence) = {
    ///     let guard = locks.lock("invoice:42").acquire().await?;
    ///     ("invoice:42", guard.fence().expect("a lock has one"))
    /// }; // the lock is lost, and another task holds it now
    /// # tokio::task::yield_now().await;
    /// let guard = locks.lock(name).acquire().await?;
    /// gate.admit(&guard.fence().expect("a lock has one"))?;
    /// assert!(gate.admit(&fence).is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`StaleFence`]. Then nothing is remembered.
    pub fn admit(&self, fence: &Fence) -> Result<(), StaleFence> {
        self.with(fence, || ())
    }

    /// Checks a fence and writes in one step: no other holder comes in between.
    ///
    /// `write` must not use this gate, or it would wait for itself. It should not take long. If it
    /// panics, the fence stays admitted.
    ///
    /// # Errors
    ///
    /// [`StaleFence`]. Then nothing is remembered and `write` did not run.
    pub fn with<R>(&self, fence: &Fence, write: impl FnOnce() -> R) -> Result<R, StaleFence> {
        self.with_all(std::slice::from_ref(fence), write)
    }

    /// Like [`with`](Self::with), for data that several locks protect together: either all fences
    /// are good, or nothing happens.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// use locktopus::FenceGate;
    /// let gate = FenceGate::new();
    /// let (from, to) =
    ///     (locks.lock("account:1").acquire().await?, locks.lock("account:2").acquire().await?);
    /// let fences: Vec<_> = [&from, &to].into_iter().filter_map(|guard| guard.fence()).collect();
    /// let moved = gate.with_all(&fences, || "moved")?; // neither, or both
    /// assert_eq!(moved, "moved");
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`StaleFence`] for the first fence that is refused.
    pub fn with_all<R>(
        &self,
        fences: &[Fence],
        write: impl FnOnce() -> R,
    ) -> Result<R, StaleFence> {
        let mut state = self.state();
        for fence in fences {
            state.check(fence)?;
            for other in fences.iter().filter(|other| other.lock == fence.lock) {
                overtaken(fence, other.token, other.holder)?;
            }
        }
        state.remember(fences);
        state.forget(self.limit, fences);
        // Still locked: this makes check and write one step.
        Ok(write())
    }

    /// The newest token seen for this lock. `None` if there was none or the gate forgot it.
    ///
    /// ```
    /// use locktopus::{Fence, FenceGate, FencingToken, LockKind, LockName, LockTarget};
    /// let (gate, token) = (FenceGate::new(), FencingToken::new(17).expect("in range"));
    /// let target = LockTarget::new(LockName::new("invoice:42")?, LockKind::Reentrant);
    /// assert_eq!(gate.newest(&target), None);
    /// gate.admit(&Fence::new(&target, token))?;
    /// assert_eq!(gate.newest(&target), Some(token));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn newest(&self, target: &LockTarget) -> Option<FencingToken> {
        let lock = FencedLock::of(target);
        self.state().seen.get(&lock).map(|seen| seen.token)
    }

    /// The state is complete before `write` runs, so a panic in `write` does no harm to it.
    fn state(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GateState {
    fn check(&self, fence: &Fence) -> Result<(), StaleFence> {
        match self.seen.get(&fence.lock) {
            Some(seen) => overtaken(fence, seen.token, seen.holder),
            None if fence.token.get() > self.floor => Ok(()),
            None => Err(StaleFence {
                fence: fence.clone(),
                newest: FencingToken::new(self.floor).unwrap_or(fence.token),
                cause: StaleCause::Forgotten,
            }),
        }
    }

    fn remember(&mut self, fences: &[Fence]) {
        for fence in fences {
            let seen = self.seen.get(&fence.lock);
            // Once the holder of a token is known, a fence without a mark does not hide it again.
            let holder = seen.filter(|seen| seen.token == fence.token);
            let holder = fence.holder.or_else(|| holder.and_then(|seen| seen.holder));
            let token = fence.token;
            self.seen
                .insert(fence.lock.clone(), NewestFence { token, holder });
        }
    }

    /// Forgets an eighth more than necessary, so that it need not scan everything each time.
    fn forget(&mut self, limit: usize, except: &[Fence]) {
        let Some(excess) = self.seen.len().checked_sub(limit).filter(|n| *n > 0) else {
            return;
        };
        let mut tokens: Vec<u64> = self.seen.values().map(|seen| seen.token.get()).collect();
        let last = (excess + limit / 8).min(tokens.len()) - 1;
        let (_, oldest, _) = tokens.select_nth_unstable(last);
        let floor = self.floor.max(*oldest);
        self.floor = floor;
        self.seen.retain(|lock, seen| {
            seen.token.get() > floor || except.iter().any(|fence| fence.lock == *lock)
        });
    }
}

/// Whether a holder with this token and mark has overtaken the fence.
fn overtaken(
    fence: &Fence,
    newest: FencingToken,
    holder: Option<HolderMark>,
) -> Result<(), StaleFence> {
    let cause = if fence.token < newest {
        StaleCause::Overtaken
    } else if fence.token == newest && holder.zip(fence.holder).is_some_and(|(a, b)| a != b) {
        StaleCause::SharedToken
    } else {
        return Ok(());
    };
    Err(StaleFence {
        fence: fence.clone(),
        newest,
        cause,
    })
}

/// A fence was refused: do not write, you no longer hold the lock.
///
/// ```
/// use locktopus::{Fence, FenceGate, StaleCause, StaleFence};
/// # use locktopus::{FencingToken, LockKind, LockName, LockTarget};
/// let target = LockTarget::new(LockName::new("invoice:42")?, LockKind::Reentrant);
/// let fence = |token| Fence::new(&target, FencingToken::new(token).expect("in range"));
/// let gate = FenceGate::new();
/// gate.admit(&fence(8))?;
/// let stale: StaleFence = gate.admit(&fence(7)).unwrap_err();
/// assert_eq!((stale.fence(), stale.newest().get()), (&fence(7), 8));
/// assert_eq!(stale.cause(), StaleCause::Overtaken);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("token {} of {} \"{}\" is stale: {cause} (newest {newest})", fence.token, fence.lock.kind, fence.lock.name)]
pub struct StaleFence {
    fence: Fence,
    newest: FencingToken,
    cause: StaleCause,
}

impl StaleFence {
    /// The refused fence.
    #[must_use]
    pub fn fence(&self) -> &Fence {
        &self.fence
    }

    /// The token that it was compared with.
    #[must_use]
    pub fn newest(&self) -> FencingToken {
        self.newest
    }

    /// Why it was refused.
    #[must_use]
    pub fn cause(&self) -> StaleCause {
        self.cause
    }
}

/// Why a fence was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StaleCause {
    /// A holder with a greater token was here earlier.
    Overtaken,
    /// Another holder with the same token was here: a server forgot a grant and repeated its token.
    /// One of the two must not write. The gate cannot tell which, so it trusts the first one.
    SharedToken,
    /// The gate has forgotten newer tokens than this one. One of them may have belonged to this
    /// lock.
    Forgotten,
}

impl fmt::Display for StaleCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Overtaken => "a later holder has been here",
            Self::SharedToken => "another holder with the same token has been here",
            Self::Forgotten => "newer tokens, perhaps of this lock, were forgotten to save memory",
        })
    }
}
