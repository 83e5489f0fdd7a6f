//! What a waiter can know while it waits: its place in the queue, and how long it may take.
//!
//! The acquire loop reports each answer through a
//! [`Reporter`]; the caller looks at a [`WaitProgress`].

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// Where a waiter stands, as the backend said at `seen_at`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let locks = locktopus::connect("memory:").await?;
/// use locktopus::WaitPosition;
/// # let holder = locks.fair_lock("printer").acquire().await?;
/// let (request, mut progress) = locks.fair_lock("printer").with_progress();
/// let waiting = tokio::spawn(request.acquire());
/// if let Some(WaitPosition { ahead: Some(ahead), holder_remaining, .. }) = progress.next().await {
///     println!("{ahead} before me, and the holder has {holder_remaining:?} left");
/// }
/// # holder.release().await?;
/// waiting.await??.release().await?;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitPosition {
    /// How many are ahead in the queue, those of this process that came before included; 0 is next.
    /// `None` while the waiter has no place in one: the strategy, the kind or the backend has no
    /// queue.
    pub ahead: Option<u64>,
    /// What is left of the lease in the way, unless its holder renews it. `None` if nobody holds
    /// the lock or the lease never ends.
    pub holder_remaining: Option<Duration>,
    /// How much longer the wait may take. `None` without a place in a queue, or if there is nothing
    /// to judge by.
    pub estimate: Option<WaitEstimate>,
    /// When the answer came. It is repeated with every heartbeat. While the lock is passed on
    /// inside this process nobody asks the backend: then it is when this process looked.
    pub seen_at: Instant,
}

/// How much longer a wait may take, and where that comes from. A guess either way: holders do what
/// they like.
///
/// ```
/// # use std::time::Duration;
/// use locktopus::WaitEstimate;
/// let estimate = WaitEstimate::Observed(Duration::from_secs(4));
/// assert_eq!(estimate.duration(), Duration::from_secs(4));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitEstimate {
    /// The queue moved since this waiter joined it: the mean time in which one of those ahead went,
    /// for each of those still ahead and for the present holder.
    Observed(Duration),
    /// The queue did not move yet: what is left of the lease in the way, and for each of those
    /// ahead a lease as long as the one this waiter asks for. Too long if they release early, too
    /// short if they renew.
    Leases(Duration),
}

impl WaitEstimate {
    /// The estimate, whatever it is based on.
    #[must_use]
    pub fn duration(self) -> Duration {
        match self {
            Self::Observed(wait) | Self::Leases(wait) => wait,
        }
    }
}

/// How a wait goes on. Made by [`LockRequest::with_progress`](crate::LockRequest::with_progress).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use locktopus_core::Locktopus;
/// # use locktopus_memory::MemoryBackend;
/// # let locks = Locktopus::builder(MemoryBackend::new()).build()?;
/// let holder = locks.fair_lock("printer").acquire().await?;
/// let (request, mut progress) = locks.fair_lock("printer").with_progress();
/// let waiting = tokio::spawn(request.acquire());
/// let standing = progress.next().await.expect("it waits");
/// assert_eq!(standing.ahead, Some(0));
/// println!("next in line; perhaps {:?} to go", standing.estimate.map(|e| e.duration()));
/// holder.release().await?;
/// waiting.await??.release().await?;
/// while let Some(_later) = progress.next().await {} // ends, because the wait is over
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct WaitProgress {
    seen: watch::Receiver<Seen>,
}

impl WaitProgress {
    /// Where the waiter stood when the backend answered last. `None` before that: perhaps it got
    /// the lock at once.
    #[must_use]
    pub fn latest(&self) -> Option<WaitPosition> {
        self.seen.borrow().standing
    }

    /// Waits for the next answer and returns it; `None` once the wait is over, with or without the
    /// lock. Answers that come faster than this is called are left out.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// let holder = locks.fair_lock("printer").acquire().await?;
    /// let (request, mut progress) = locks.fair_lock("printer").with_progress();
    /// let waiting = tokio::spawn(request.acquire());
    /// let position = progress.next().await.expect("it waits");
    /// assert_eq!((position.ahead, progress.latest()), (Some(0), Some(position)));
    /// holder.release().await?;
    /// waiting.await??.release().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn next(&mut self) -> Option<WaitPosition> {
        self.seen.changed().await.ok()?;
        self.seen.borrow_and_update().standing
    }
}

/// Where the acquire loop reports what it was told.
#[derive(Debug, Clone)]
pub(crate) struct Reporter {
    seen: watch::Sender<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    standing: Option<WaitPosition>,
    queue: Option<Queue>,
}

/// How the queue moved since it was joined.
#[derive(Debug, Clone, Copy)]
struct Queue {
    joined: Instant,
    ahead: u64,
    /// How many of those ahead have gone, and when that was last seen.
    gone: u64,
    moved: Instant,
}

impl Reporter {
    pub(crate) fn new() -> (Self, WaitProgress) {
        let (sender, receiver) = watch::channel(Seen::default());
        (Self { seen: sender }, WaitProgress { seen: receiver })
    }

    /// Notes an answer: how many are ahead, if there is a queue, and what is left of the lease in
    /// the way. `lease` is what the waiter asks for.
    pub(crate) fn report(&self, ahead: Option<u64>, remaining: Option<Duration>, lease: Duration) {
        let now = Instant::now();
        self.seen.send_modify(|seen| {
            seen.queue = ahead.map(|ahead| Queue::after(seen.queue, ahead, now));
            seen.standing = Some(WaitPosition {
                ahead,
                holder_remaining: remaining,
                estimate: seen
                    .queue
                    .and_then(|queue| queue.estimate(remaining, lease)),
                seen_at: now,
            });
        });
    }
}

impl Queue {
    /// The queue as it is now. More ahead than before: the place was lost and a new one taken.
    fn after(before: Option<Self>, ahead: u64, now: Instant) -> Self {
        match before {
            Some(queue) if ahead < queue.ahead => Self {
                ahead,
                gone: queue.gone + (queue.ahead - ahead),
                moved: now,
                ..queue
            },
            Some(queue) if ahead == queue.ahead => queue,
            _ => Self {
                joined: now,
                ahead,
                gone: 0,
                moved: now,
            },
        }
    }

    fn estimate(self, remaining: Option<Duration>, lease: Duration) -> Option<WaitEstimate> {
        let ahead = u32::try_from(self.ahead).unwrap_or(u32::MAX);
        if self.gone == 0 {
            let waits = lease.saturating_mul(ahead);
            return remaining.map(|left| WaitEstimate::Leases(left.saturating_add(waits)));
        }
        let gone = u32::try_from(self.gone).unwrap_or(u32::MAX);
        let each = self.moved.saturating_duration_since(self.joined) / gone;
        Some(WaitEstimate::Observed(
            each.saturating_mul(ahead.saturating_add(1)),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn the_estimate_learns_from_the_queue() {
        let (reporter, progress) = Reporter::new();
        let estimate = || progress.latest().and_then(|standing| standing.estimate);
        reporter.report(Some(3), Some(Duration::from_secs(5)), LEASE);
        assert_eq!(
            estimate(),
            Some(WaitEstimate::Leases(Duration::from_secs(5) + LEASE * 3))
        );
        tokio::time::advance(Duration::from_secs(4)).await;
        reporter.report(Some(1), Some(LEASE), LEASE);
        let observed = |secs| Some(WaitEstimate::Observed(Duration::from_secs(secs)));
        assert_eq!(
            estimate(),
            observed(4),
            "two went in four seconds, two to go"
        );
        tokio::time::advance(Duration::from_secs(2)).await;
        reporter.report(Some(1), Some(LEASE), LEASE);
        assert_eq!(estimate(), observed(4), "nothing new");
        reporter.report(Some(2), None, LEASE);
        assert_eq!(
            estimate(),
            None,
            "a new place: what was seen does not count"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_queue_there_is_no_estimate() {
        let (reporter, progress) = Reporter::new();
        assert_eq!(progress.latest(), None);
        reporter.report(None, Some(LEASE), LEASE);
        let standing = progress.latest().unwrap();
        assert_eq!((standing.ahead, standing.estimate), (None, None));
        assert_eq!(standing.holder_remaining, Some(LEASE));
    }
}
