//! Repeats releases after a failover: the new primary may never have received them.
//!
//! A promoted replica lacks the last writes of its primary. If such a write was a release, the lock
//! stays held by a dead owner until its lease expires. So this module repeats releases in two
//! cases:
//!
//! * Another server may have taken over: it repeats all releases of the last seconds.
//! * A grant arrives for an owner that is gone: it repeats that owner's release. The new primary
//!   still had the owner in a queue.
//!
//! A repeated release is always safe. It ends the hold of its owner and nothing else, and no
//! attempt follows under that owner id: only releases with [`ReleaseRequest::last`] are kept.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use locktopus_contract::{Linger, LockTarget, OwnerId, ReleaseRequest, lock};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::context::Context;

/// How old a repeated release may be: the lag of a replica, and the time to notice a new primary.
const LATELY: Duration = Duration::from_secs(5);
/// How long a release is kept in case a grant to its owner arrives.
const KEPT_FOR: Duration = Duration::from_secs(60);
/// The most releases kept. A busier process repeats only the newest.
const KEPT: usize = 1024;
/// The most grants without a waiter that may queue up.
const UNCLAIMED: usize = 256;
/// The most repetitions at once.
const AT_ONCE: usize = 16;
/// The shortest time between two repetitions of all releases: servers change often while a cluster
/// moves its slots.
const PAUSE: Duration = Duration::from_secs(1);
/// The pause after a failed repetition.
const RETRY: Duration = Duration::from_millis(50);
/// How long a repetition is retried. A failover takes less.
const REPEATED_FOR: Duration = Duration::from_secs(60);

/// An answered release.
#[derive(Debug, Clone)]
struct Kept {
    at: Instant,
    request: Arc<ReleaseRequest>,
}

impl Kept {
    /// The owner and the lock of the ended hold.
    fn key(&self) -> (OwnerId, LockTarget) {
        let ReleaseRequest { owner, target, .. } = &*self.request;
        (owner.clone(), target.clone())
    }

    /// The same release, sent now.
    fn again(&self, deadline: Instant) -> ReleaseRequest {
        let left = |linger: &Linger| {
            let time = linger.time.checked_sub(self.at.elapsed())?;
            let heir = linger.heir.clone();
            (time >= Duration::from_millis(1)).then_some(Linger { heir, time })
        };
        ReleaseRequest {
            deadline,
            linger: self.request.linger.as_ref().and_then(left),
            ..ReleaseRequest::clone(&self.request)
        }
    }
}

/// The releases of the last seconds.
#[derive(Debug)]
pub(super) struct Repeats {
    kept: Mutex<VecDeque<Kept>>,
    /// Sends the owner ids whose releases [`run`] repeats.
    wanted: mpsc::Sender<Bytes>,
    changes: watch::Receiver<u64>,
    /// What [`run`] needs, until the first release starts it.
    idle: Mutex<Option<(Handle, mpsc::Receiver<Bytes>)>>,
}

impl Repeats {
    /// Starts empty and needs a tokio runtime. The hub sends it the owner ids of grants without a
    /// waiter.
    pub(super) fn new(changes: watch::Receiver<u64>) -> (Self, mpsc::Sender<Bytes>) {
        let (unclaimed, wanted) = mpsc::channel(UNCLAIMED);
        let repeats = Self {
            kept: Mutex::default(),
            wanted: unclaimed.clone(),
            changes,
            idle: Mutex::new(Some((Handle::current(), wanted))),
        };
        (repeats, unclaimed)
    }

    /// How often the servers have changed. Read it before you send a release.
    pub(super) fn changes(&self) -> u64 {
        *self.changes.borrow()
    }

    fn keep(&self, request: &ReleaseRequest, changes: u64) {
        let at = Instant::now();
        let request = Arc::new(request.clone());
        let owner = request.owner.clone();
        {
            let mut kept = lock(&self.kept);
            while kept
                .front()
                .is_some_and(|oldest| at.duration_since(oldest.at) > KEPT_FOR)
                || kept.len() >= KEPT
            {
                kept.pop_front();
            }
            kept.push_back(Kept { at, request });
        }
        if self.changes() != changes {
            // The repetition may have begun without this one. A full channel loses it.
            let _full = self.wanted.try_send(Bytes::copy_from_slice(owner.expose()));
        }
    }

    /// The releases of the last seconds. The newest comes first: it is most likely lost.
    fn lately(&self) -> Vec<Kept> {
        let now = Instant::now();
        let kept = lock(&self.kept);
        let lately = kept
            .iter()
            .rev()
            .take_while(|kept| now.duration_since(kept.at) <= LATELY);
        lately.cloned().collect()
    }

    /// The releases of this owner: of both halves of a read-write lock.
    fn of(&self, owner: &[u8]) -> Vec<Kept> {
        let kept = lock(&self.kept);
        let of = kept.iter().rev();
        of.filter(|kept| kept.request.owner.expose() == owner)
            .cloned()
            .collect()
    }
}

impl Context {
    /// Keeps an answered release. `changes` was read before it was sent.
    pub(super) fn keep(self: &Arc<Self>, request: &ReleaseRequest, changes: u64) {
        if !request.last {
            return;
        }
        if let Some((runtime, wanted)) = lock(&self.repeats.idle).take() {
            // From here on it notices each change. Before, `keep` does.
            let mut changes_from_now = self.repeats.changes.clone();
            changes_from_now.mark_unchanged();
            // It ends with the context.
            runtime.spawn(run(Arc::downgrade(self), wanted, changes_from_now));
        }
        self.repeats.keep(request, changes);
    }
}

/// A release to repeat.
struct Due {
    kept: Kept,
    until: Instant,
}

impl Due {
    fn now(kept: Kept) -> Self {
        let until = Instant::now() + REPEATED_FOR;
        Self { kept, until }
    }
}

/// Repeats releases until the backend is dropped. `wanted` receives owner ids from the hub.
async fn run(
    context: Weak<Context>,
    mut wanted: mpsc::Receiver<Bytes>,
    mut changes: watch::Receiver<u64>,
) {
    let mut due: VecDeque<Due> = VecDeque::new();
    let mut sent = FuturesUnordered::new();
    let (mut all, mut next_at) = (false, Instant::now());
    loop {
        while sent.len() < AT_ONCE
            && let Some(next) = due.pop_front()
        {
            sent.push(repeat(Weak::clone(&context), next));
        }
        tokio::select! {
            Ok(()) = changes.changed() => all = true,
            () = sleep_until(next_at), if all => {
                let Some(context) = context.upgrade() else { return };
                (all, next_at) = (false, Instant::now() + PAUSE);
                let waiting: HashSet<_> = due.iter().map(|due| due.kept.key()).collect();
                let mut lately = context.repeats.lately();
                lately.retain(|kept| !waiting.contains(&kept.key()));
                due.extend(lately.into_iter().map(Due::now));
            }
            Some(owner) = wanted.recv() => {
                let Some(context) = context.upgrade() else { return };
                for kept in context.repeats.of(&owner) {
                    due.push_front(Due::now(kept));
                }
            }
            Some(failed) = sent.next(), if !sent.is_empty() => due.extend(failed),
            else => return,
        }
    }
}

/// Repeats one release. Returns it if it must be retried.
async fn repeat(context: Weak<Context>, due: Due) -> Option<Due> {
    let context = context.upgrade()?;
    let request = due
        .kept
        .again(Instant::now() + context.options.call_timeout);
    let answer = context.release(&request).await;
    drop(context);
    let error = answer.err()?;
    tracing::debug!(lock = %request.target, %error, "a release could not be repeated");
    if !error.is_transient() || Instant::now() >= due.until {
        return None;
    }
    sleep(RETRY).await;
    Some(due)
}
