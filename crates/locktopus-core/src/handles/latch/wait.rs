//! Waiting for a latch.
//!
//! A message that the latch opened is only a hint to check the count. Waiters also check at every
//! heartbeat, so a lost message delays them by one heartbeat at most.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::time::Duration;

use locktopus_contract::clock::{timer_after, timer_in};
use locktopus_contract::{LockKind, LockTarget, OptionError, WakeStream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Latch;
use crate::engine::error::{LockError, Phase};
use crate::engine::jitter::jitter;
use crate::engine::settings::{WaitStrategy, heartbeat_bounds};

/// The first pause of a waiter that polls, because the backend cannot notify it.
const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// A wait for a latch. Made by [`Latch::wait`]; await it.
///
/// Without options it waits for as long as it takes. It also checks the count every second, give or
/// take a quarter, in case a message was lost.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let locks = locktopus::connect("memory:").await?;
/// let shards = locks.latch("rebuild");
/// shards.initialise(1).await?;
/// let waiting = tokio::spawn(shards.wait().into_future());
/// shards.count_down().await?;
/// waiting.await??;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
#[must_use = "nothing is waited for until this is awaited"]
pub struct LatchWait {
    latch: Latch,
    limit: Option<Duration>,
    heartbeat: Option<Duration>,
    cancel: Option<CancellationToken>,
}

impl LatchWait {
    pub(super) fn new(latch: Latch) -> Self {
        Self {
            latch,
            limit: None,
            heartbeat: None,
            cancel: None,
        }
    }

    /// Gives up with [`LockError::WaitTimeout`] after this time. The first check always has a
    /// quarter of the backend's call timeout for its answer, but at least 50 and at most 250 ms.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::connect("memory:").await?;
    /// let shards = locks.latch("rebuild");
    /// shards.initialise(1).await?;
    /// let waited = shards.wait().at_most(Duration::from_millis(20)).await;
    /// assert!(waited.is_err_and(|error| error.is_busy()));
    /// # Ok(()) }
    /// ```
    pub fn at_most(mut self, wait: Duration) -> Self {
        self.limit = Some(wait);
        self
    }

    /// How often to check the count without a message, give or take a quarter: at least 1 ms, at
    /// most a day. Default: that of the `Locktopus`' [strategy](crate::LocktopusBuilder::strategy),
    /// one second.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::time::Duration;
    /// # let locks = locktopus::connect("memory:").await?;
    /// let shards = locks.latch("rebuild");
    /// shards.wait().heartbeat(Duration::from_millis(100)).await?;
    /// # Ok(()) }
    /// ```
    pub fn heartbeat(mut self, heartbeat: Duration) -> Self {
        self.heartbeat = Some(heartbeat);
        self
    }

    /// Gives up with [`LockError::Cancelled`] when this token is cancelled.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// use locktopus::{CancellationToken, LockError};
    /// let shards = locks.latch("rebuild");
    /// shards.initialise(1).await?;
    /// let stop = CancellationToken::new();
    /// let waiting = tokio::spawn(shards.wait().cancel_on(stop.clone()).into_future());
    /// stop.cancel();
    /// assert!(matches!(waiting.await?, Err(LockError::Cancelled { .. })));
    /// # Ok(()) }
    /// ```
    pub fn cancel_on(mut self, token: CancellationToken) -> Self {
        self.cancel = Some(token);
        self
    }

    async fn run(self) -> Result<(), LockError> {
        let latch = &self.latch;
        let target = latch.name.target(&latch.services, &LockKind::Latch)?;
        latch.services.ready_for(&target, Phase::Inspect)?;
        let heartbeat = self.checked_heartbeat()?;
        let started = Instant::now();
        // A check always has a moment for its answer. Otherwise a short limit could not find the
        // latch open.
        let moment = latch.services.first_answer();
        let limit = self
            .limit
            .map(|limit| timer_after(started, limit.max(moment)));
        let out_of_time = async {
            match limit {
                Some(limit) => tokio::time::sleep_until(limit).await,
                None => std::future::pending().await,
            }
        };
        let cancelled = async {
            match &self.cancel {
                Some(token) => token.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = latch.services.closing.cancelled() => Err(LockError::ShutDown),
            () = cancelled => Err(LockError::Cancelled { target: target.clone() }),
            opened = self.opened(&target, heartbeat) => opened,
            () = out_of_time => Err(LockError::out_of_time(&target, started)),
        }
    }

    /// Completes when a check finds the count at zero.
    async fn opened(&self, target: &LockTarget, heartbeat: Duration) -> Result<(), LockError> {
        let mut hints: Option<WakeStream> = None;
        let mut pause = FIRST_PAUSE;
        loop {
            if self.latch.count().await? == 0 {
                return Ok(());
            }
            if hints.is_none() {
                hints = self.subscribe(target).await;
                // Subscribe first, then check again: a message between the two would be missed.
                if hints.is_some() {
                    continue;
                }
            }
            match &mut hints {
                Some(hints) => {
                    let until = jitter(heartbeat * 3 / 4, heartbeat * 5 / 4);
                    // Check again on any message, and without one.
                    let _ = tokio::time::timeout(until, hints.next()).await;
                }
                None => {
                    tokio::time::sleep(jitter(pause / 2, pause)).await;
                    pause = (pause * 2).min(heartbeat);
                }
            }
        }
    }

    async fn subscribe(&self, target: &LockTarget) -> Option<WakeStream> {
        let services = &self.latch.services;
        services.backend.wake_ups()?;
        let deadline = timer_in(services.call_timeout());
        let call = services.backend.subscribe(target, deadline);
        let hints = services.within(deadline, call).await;
        hints
            .inspect_err(|error| {
                tracing::debug!(lock = %target, %error, "cannot listen for the latch, polling");
            })
            .ok()
    }

    fn checked_heartbeat(&self) -> Result<Duration, OptionError> {
        let heartbeat = match (self.heartbeat, self.latch.services.settings.strategy) {
            (Some(heartbeat), _)
            | (
                None,
                WaitStrategy::HandOff { heartbeat, .. } | WaitStrategy::Notify { heartbeat },
            ) => heartbeat,
            (None, WaitStrategy::Poll { max, .. }) => max,
        };
        if heartbeat_bounds().contains(&heartbeat) {
            return Ok(heartbeat);
        }
        let rule = "pauses must be between 1 ms and a day";
        Err(OptionError::new("heartbeat", heartbeat, rule))
    }
}

impl IntoFuture for LatchWait {
    type Output = Result<(), LockError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    /// Waits until the count is zero.
    ///
    /// # Errors
    ///
    /// [`LockError::WaitTimeout`] and [`LockError::Cancelled`] if you set those options; otherwise
    /// the errors of all methods of [`Latch`](Latch#errors).
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: it only reads.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}
