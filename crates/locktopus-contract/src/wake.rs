//! Hints: a lock became free, so a waiter should check it.
//!
//! A release message wakes one waiter of the process, first come first served, not all of them.
//! Only one can win, and the others would only load the server. A waiter that loses the race keeps
//! its place. A waiter that leaves after it was woken passes the hint on.
//!
//! A pushed grant goes only to the waiter whose owner it names. A holder may keep listening, to
//! learn when another owner wants its lock. It gets no hints.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use crate::owner::OwnerId;
use crate::sync::lock;
use crate::token::FencingToken;

/// A hint that a waiter should check the lock now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wake {
    /// A holder released the lock.
    Released,
    /// The backend made this waiter's owner the holder. The receiver must decide whether to trust
    /// this without asking: the message may be old.
    Granted {
        /// The first token of the grant.
        token: FencingToken,
    },
    /// Another owner wants the lock that this owner holds.
    Wanted,
    /// Hints may have been lost. Check the lock, and trust no earlier hint.
    Resync,
}

/// The waiters of one process for one lock.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use locktopus_contract::{FencingToken, OwnerId, Wake, WakeGroup};
/// // A backend keeps one for each lock with waiters.
/// let group = Arc::new(WakeGroup::default());
/// let owner = OwnerId::generate();
/// let mut waiter = group.join(()); // pass the value that ends the subscription
/// waiter.claim(&owner);
/// assert!(group.len() == 1 && group.awaits(owner.expose()));
///
/// group.wake_one(); // a holder released it
/// assert_eq!(waiter.next().await, Wake::Released);
/// group.resync(); // messages may have been lost
/// assert_eq!(waiter.next().await, Wake::Resync);
/// assert!(group.nudge(owner.expose())); // this waiter should check the lock
/// let token = FencingToken::new(17).expect("in range");
/// assert!(group.grant(owner.expose(), token)); // it has the lock
/// assert_eq!(waiter.next().await, Wake::Granted { token });
/// waiter.won();
/// assert!(group.is_empty());
/// group.wake_all(); // no waiter is left
/// assert!(!group.want(owner.expose()));
/// # Ok(()) }
/// ```
#[derive(Debug, Default)]
pub struct WakeGroup {
    waiters: Mutex<VecDeque<Arc<Waiter>>>,
}

#[derive(Debug, Default)]
struct Waiter {
    owner: Mutex<Option<OwnerId>>,
    /// It has the lock, so it needs no hint that the lock may be free.
    holds: AtomicBool,
    pending: Mutex<Option<Wake>>,
    notify: Notify,
}

impl Waiter {
    fn is(&self, owner: &[u8]) -> bool {
        let claimed = lock(&self.owner);
        claimed.as_ref().is_some_and(|own| own.expose() == owner)
    }

    fn holds(&self) -> bool {
        self.holds.load(Ordering::Acquire)
    }

    fn wake(&self, wake: Wake) {
        *lock(&self.pending) = Some(wake);
        self.notify.notify_one();
    }
}

impl WakeGroup {
    /// Adds a waiter at the end of the queue. `keep` is dropped with the stream: pass the value
    /// that ends the subscription.
    pub fn join(self: &Arc<Self>, keep: impl Any + Send + Sync) -> WakeStream {
        let waiter = Arc::new(Waiter::default());
        lock(&self.waiters).push_back(Arc::clone(&waiter));
        WakeStream {
            group: Arc::clone(self),
            waiter,
            looking: false,
            filters: Vec::new(),
            _keep: Box::new(keep),
        }
    }

    /// Wakes the first waiter without a pending hint.
    pub fn wake_one(&self) {
        let waiters = lock(&self.waiters);
        for waiter in waiters.iter().filter(|waiter| !waiter.holds()) {
            let mut pending = lock(&waiter.pending);
            if pending.is_none() {
                *pending = Some(Wake::Released);
                drop(pending);
                waiter.notify.notify_one();
                return;
            }
        }
    }

    /// Wakes every waiter, for locks that all of them can pass at once.
    pub fn wake_all(&self) {
        for waiter in lock(&self.waiters).iter() {
            waiter.wake(Wake::Released);
        }
    }

    /// Tells the waiter of this owner that it has the lock. Returns false if there is none.
    pub fn grant(&self, owner: &[u8], token: FencingToken) -> bool {
        self.tell(owner, Wake::Granted { token })
    }

    /// Tells the holder with this owner that another owner wants the lock. Returns false if it is
    /// not listening.
    pub fn want(&self, owner: &[u8]) -> bool {
        self.tell(owner, Wake::Wanted)
    }

    /// Makes the waiter of this owner check the lock. Returns false if there is none.
    pub fn nudge(&self, owner: &[u8]) -> bool {
        self.tell(owner, Wake::Resync)
    }

    /// Whether a waiter [claims](WakeStream::claim) this owner.
    #[must_use]
    pub fn awaits(&self, owner: &[u8]) -> bool {
        lock(&self.waiters).iter().any(|waiter| waiter.is(owner))
    }

    fn tell(&self, owner: &[u8], wake: Wake) -> bool {
        let waiters = lock(&self.waiters);
        let waiter = waiters.iter().find(|waiter| waiter.is(owner));
        if let Some(waiter) = waiter {
            waiter.wake(wake);
        }
        waiter.is_some()
    }

    /// Makes every waiter check the lock.
    pub fn resync(&self) {
        for waiter in lock(&self.waiters).iter() {
            waiter.wake(Wake::Resync);
        }
    }

    /// The number of listeners: waiters and holders.
    #[must_use]
    pub fn len(&self) -> usize {
        lock(&self.waiters).len()
    }

    /// Whether there are no listeners.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One waiter's stream of hints. Dropping it leaves the queue.
///
/// ```
/// use std::sync::Arc;
/// use locktopus_contract::{OwnerId, Wake, WakeGroup, WakeStream};
/// let group = Arc::new(WakeGroup::default());
/// let mut holder: WakeStream = group.join(());
/// holder.claim(&OwnerId::generate());
/// holder.hold(); // it has the lock, and keeps listening
/// let deaf = holder.filtered(|_owner, wake| wake != Wake::Wanted); // a layer that loses messages
/// drop(deaf); // leaves the group
/// assert!(group.is_empty());
/// ```
pub struct WakeStream {
    group: Arc<WakeGroup>,
    waiter: Arc<Waiter>,
    /// The waiter took a `Released` hint and has since neither won nor asked for the next one.
    looking: bool,
    /// A hint passes only if all of them let it through.
    filters: Vec<Box<Filter>>,
    _keep: Box<dyn Any + Send + Sync>,
}

/// Gets the stream's owner and a hint on its way to it. False drops the hint.
type Filter = dyn Fn(Option<&OwnerId>, Wake) -> bool + Send + Sync;

impl WakeStream {
    /// Sets the owner whose grants this stream receives.
    pub fn claim(&self, owner: &OwnerId) {
        *lock(&self.waiter.owner) = Some(owner.clone());
    }

    /// For layers: shows each hint before the waiter gets it, with the owner that the waiter
    /// [claims](Self::claim). If `passes` returns false, the hint is lost, as messages may be.
    #[must_use]
    pub fn filtered(
        mut self,
        passes: impl Fn(Option<&OwnerId>, Wake) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.filters.push(Box::new(passes));
        self
    }

    fn passes(&self, wake: Wake) -> bool {
        if self.filters.is_empty() {
            return true;
        }
        let owner = lock(&self.waiter.owner).clone();
        self.filters
            .iter()
            .all(|passes| passes(owner.as_ref(), wake))
    }

    /// Waits for the next hint.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    /// use locktopus_contract::{Wake, WakeGroup};
    /// let group = Arc::new(WakeGroup::default());
    /// let (mut first, mut second) = (group.join(()), group.join(()));
    /// group.wake_one();
    /// assert_eq!(first.next().await, Wake::Released);
    /// first.won(); // otherwise the second would be woken as it leaves
    /// group.wake_all();
    /// assert_eq!(second.next().await, Wake::Released);
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: a hint that was not returned is still there for the next call.
    pub async fn next(&mut self) -> Wake {
        self.looking = false;
        loop {
            let pending = lock(&self.waiter.pending).take();
            if let Some(wake) = pending.filter(|wake| self.passes(*wake)) {
                self.looking = wake == Wake::Released;
                return wake;
            }
            self.waiter.notify.notified().await;
        }
    }

    /// Leaves without passing the hint on: this waiter got the lock, and its own release will wake
    /// the next one.
    pub fn won(mut self) {
        self.looking = false;
        *lock(&self.waiter.pending) = None;
    }

    /// Keeps listening as the holder, from now on only for messages about its hold. It keeps such a
    /// message that has already arrived.
    pub fn hold(&mut self) {
        self.looking = false;
        self.waiter.holds.store(true, Ordering::Release);
        let mut pending = lock(&self.waiter.pending);
        // Its own release will wake the next one.
        pending.take_if(|wake| matches!(wake, Wake::Released | Wake::Granted { .. }));
    }

    /// Waits until another owner wants the lock, or until such a message may have been lost.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    /// use locktopus_contract::{OwnerId, WakeGroup};
    /// let (group, owner) = (Arc::new(WakeGroup::default()), OwnerId::generate());
    /// let mut holder = group.join(());
    /// holder.claim(&owner);
    /// holder.hold();
    /// group.wake_all(); // of no interest to a holder
    /// group.want(owner.expose());
    /// holder.wanted().await;
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn wanted(&mut self) {
        while !matches!(self.next().await, Wake::Wanted | Wake::Resync) {}
    }
}

impl Drop for WakeStream {
    fn drop(&mut self) {
        lock(&self.group.waiters).retain(|waiter| !Arc::ptr_eq(waiter, &self.waiter));
        let unused = lock(&self.waiter.pending).take() == Some(Wake::Released);
        if unused || self.looking {
            self.group.wake_one();
        }
    }
}

impl fmt::Debug for WakeStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WakeStream")
            .field("looking", &self.looking)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn woken(stream: &mut WakeStream) -> Option<Wake> {
        stream.next().now_or_never()
    }

    #[test]
    fn one_release_wakes_one_waiter_in_order() {
        let group = Arc::new(WakeGroup::default());
        let (mut a, mut b) = (group.join(()), group.join(()));
        group.wake_one();
        assert_eq!(woken(&mut b), None);
        assert_eq!(woken(&mut a), Some(Wake::Released));
        group.wake_one();
        assert_eq!(
            woken(&mut a),
            Some(Wake::Released),
            "the first waiter keeps its place"
        );
    }

    #[test]
    fn a_hint_is_passed_on_by_a_waiter_that_leaves() {
        let group = Arc::new(WakeGroup::default());
        let (a, mut b) = (group.join(()), group.join(()));
        group.wake_one();
        drop(a);
        assert_eq!(woken(&mut b), Some(Wake::Released), "unread hint");
        let mut c = group.join(());
        group.wake_one();
        assert_eq!(woken(&mut b), Some(Wake::Released));
        drop(b);
        assert_eq!(
            woken(&mut c),
            Some(Wake::Released),
            "read hint, but nothing won"
        );
    }

    #[test]
    fn the_winner_passes_nothing_on() {
        let group = Arc::new(WakeGroup::default());
        let (mut a, mut b) = (group.join(()), group.join(()));
        group.wake_one();
        assert_eq!(woken(&mut a), Some(Wake::Released));
        a.won();
        assert_eq!(woken(&mut b), None);
        assert_eq!(group.len(), 1);
    }

    #[test]
    fn a_holder_hears_that_it_is_wanted_and_takes_no_hint() {
        let group = Arc::new(WakeGroup::default());
        let owners = [OwnerId::generate(), OwnerId::generate()];
        let (mut holder, mut waiter) = (group.join(()), group.join(()));
        holder.claim(&owners[0]);
        waiter.claim(&owners[1]);
        assert!(group.want(owners[0].expose()));
        holder.hold();
        assert!(
            holder.wanted().now_or_never().is_some(),
            "it was told before it began to hold"
        );
        group.wake_one();
        assert_eq!(woken(&mut holder), None);
        assert_eq!(woken(&mut waiter), Some(Wake::Released));
        drop(holder);
        assert!(!group.want(owners[0].expose()));
    }

    #[test]
    fn a_new_holder_forgets_how_it_came_by_the_lock() {
        let group = Arc::new(WakeGroup::default());
        let mut stream = group.join(());
        for before in [Wake::Released, Wake::Resync] {
            stream.waiter.wake(before);
            stream.hold();
            let expected = (before == Wake::Resync).then_some(before);
            assert_eq!(woken(&mut stream), expected);
        }
    }

    #[test]
    fn what_any_filter_refuses_is_lost() {
        let group = Arc::new(WakeGroup::default());
        let owner = OwnerId::generate();
        let claimed = owner.clone();
        let mut stream = group
            .join(())
            .filtered(move |asked, _| asked == Some(&claimed))
            .filtered(|_, wake| wake != Wake::Released);
        group.resync();
        assert_eq!(woken(&mut stream), None, "it is nobody's yet");
        stream.claim(&owner);
        group.wake_one();
        assert_eq!(woken(&mut stream), None);
        group.resync();
        assert_eq!(woken(&mut stream), Some(Wake::Resync));
    }

    #[test]
    fn resync_reaches_everybody() {
        let group = Arc::new(WakeGroup::default());
        let mut streams = [group.join(()), group.join(()), group.join(())];
        group.resync();
        assert!(
            streams
                .iter_mut()
                .all(|stream| woken(stream) == Some(Wake::Resync))
        );
    }
}
