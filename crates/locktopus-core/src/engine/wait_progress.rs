//! Progress of a wait: the place in the queue, and how long it may take.
//!
//! The acquire loop reports each answer through a [`ProgressReporter`], and the caller reads a
//! [`WaitProgress`].

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// The position of a waiter, as reported by the backend at `seen_at`.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
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
    /// How many waiters are ahead in the queue, including earlier ones of this process; 0 means
    /// next. `None` while the waiter has no place, because the strategy, the kind or the backend
    /// has no queue.
    pub ahead: Option<u64>,
    /// What is left of the blocking lease, unless its holder renews it. `None` if the lock is free
    /// or the lease never expires.
    pub holder_remaining: Option<Duration>,
    /// How much longer the wait may take. `None` without a place in a queue, or without enough
    /// data.
    pub estimate: Option<WaitEstimate>,
    /// When the answer came. Every heartbeat brings a new one. While the lock is passed on inside
    /// this process, no task asks the backend; then it is when this process last checked.
    pub seen_at: Instant,
}

/// How much longer a wait may take, and the basis of that estimate. It is a guess either way,
/// because holders keep the lock as long as they like.
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
    /// The queue has moved since this waiter joined: the mean time for each departure, for each
    /// waiter still ahead and for the current holder.
    Observed(Duration),
    /// The queue has not moved yet: what is left of the blocking lease, and one lease of this
    /// waiter's length for each waiter ahead. Too long if they release early, too short if they
    /// renew.
    Leases(Duration),
}

impl WaitEstimate {
    /// The estimate, on either basis.
    #[must_use]
    pub fn duration(self) -> Duration {
        match self {
            Self::Observed(wait) | Self::Leases(wait) => wait,
        }
    }
}

/// The progress of a wait. Created by
/// [`LockRequest::with_progress`](crate::LockRequest::with_progress).
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use locktopus_core::Locktopus;
/// # use locktopus_memory::MemoryBackend;
/// # let locks = Locktopus::builder(MemoryBackend::new()).build()?;
/// let holder = locks.fair_lock("printer").acquire().await?;
/// let (request, mut progress) = locks.fair_lock("printer").with_progress();
/// let waiting = tokio::spawn(request.acquire());
/// let position = progress.next().await.expect("it waits");
/// assert_eq!(position.ahead, Some(0));
/// println!("next in line; perhaps {:?} to go", position.estimate.map(|e| e.duration()));
/// holder.release().await?;
/// waiting.await??.release().await?;
/// while let Some(_later) = progress.next().await {} // ends, because the wait is over
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct WaitProgress {
    seen: watch::Receiver<ProgressState>,
}

impl WaitProgress {
    /// The waiter's position in the backend's last answer. `None` before the first answer: the
    /// waiter may have got the lock at once.
    #[must_use]
    pub fn latest(&self) -> Option<WaitPosition> {
        self.seen.borrow().position
    }

    /// Waits for the next answer and returns it; `None` once the wait is over, with or without the
    /// lock. It skips answers that arrive between calls, except the last.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
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
        self.seen.borrow_and_update().position
    }
}

/// The sending half of a [`WaitProgress`]: the acquire loop reports answers through it.
#[derive(Debug, Clone)]
pub(crate) struct ProgressReporter {
    seen: watch::Sender<ProgressState>,
}

#[derive(Debug, Default)]
struct ProgressState {
    position: Option<WaitPosition>,
    queue: Option<QueueProgress>,
}

/// How the queue has moved since the waiter joined it.
#[derive(Debug, Clone, Copy)]
struct QueueProgress {
    joined: Instant,
    ahead: u64,
    /// How many of those ahead have left, and when that was last seen.
    gone: u64,
    moved: Instant,
}

impl ProgressReporter {
    pub(crate) fn new() -> (Self, WaitProgress) {
        let (sender, receiver) = watch::channel(ProgressState::default());
        (Self { seen: sender }, WaitProgress { seen: receiver })
    }

    /// Notes an answer: how many are ahead, if there is a queue, and what is left of the blocking
    /// lease. `lease` is the length that the waiter wants.
    pub(crate) fn report(&self, ahead: Option<u64>, remaining: Option<Duration>, lease: Duration) {
        let now = Instant::now();
        self.seen.send_modify(|seen| {
            seen.queue = ahead.map(|ahead| QueueProgress::after(seen.queue, ahead, now));
            seen.position = Some(WaitPosition {
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

impl QueueProgress {
    /// The queue now. If more are ahead than before, the waiter lost its place and took a new one.
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
        let (reporter, progress) = ProgressReporter::new();
        let estimate = || progress.latest().and_then(|position| position.estimate);
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
        let (reporter, progress) = ProgressReporter::new();
        assert_eq!(progress.latest(), None);
        reporter.report(None, Some(LEASE), LEASE);
        let position = progress.latest().unwrap();
        assert_eq!((position.ahead, position.estimate), (None, None));
        assert_eq!(position.holder_remaining, Some(LEASE));
    }
}
