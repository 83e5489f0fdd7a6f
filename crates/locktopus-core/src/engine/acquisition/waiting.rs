//! How an acquisition waits for its turn at the backend.

use std::time::Duration;

use locktopus_contract::{FencingToken, Mode, Wake, WakeStream};
use tokio::time::Instant;

use super::attempts::{Acquisition, AttemptFailure, SHORTEST_HEARTBEAT};
use super::lead::Stop;
use super::plan::Wait;
use crate::engine::jitter::jitter;
use crate::engine::settings::WaitStrategy;

/// The mean first pause of a polling waiter that is next in the queue.
const POLL_STEP: Duration = Duration::from_millis(30);
/// The longest mean pause of a polling waiter in the queue.
const LONGEST_POLL: Duration = Duration::from_millis(400);

impl Acquisition<'_> {
    /// Whether to subscribe to wake-ups. A waiter in the queue of a fair lock must: it checks as
    /// often as its strategy says, but is passed over unless its process listens.
    pub(super) fn listens(&self) -> bool {
        self.plan.wait != Wait::Not
            && self.plan.target.kind().announces()
            && self.services.backend.wake_ups().is_some()
            && (!matches!(self.plan.strategy, WaitStrategy::Poll { .. })
                || self.plan.target.kind().has_strict_queue())
    }

    /// Whether the next attempt asks for a place in the queue, if attempts want one. In the queue
    /// of a fair lock, only a listening waiter does, because a waiter that cannot be notified is
    /// passed over. One that cannot subscribe still queues.
    pub(super) fn takes_place(&self) -> bool {
        !self.plan.target.kind().has_strict_queue()
            || !self.listens()
            || self.state.hints.is_some()
            || self.unsubscribed
    }

    /// Whether attempts want a place in the queue. Waiters of a fair lock always do; their strategy
    /// only decides how they notice their turn.
    pub(super) fn queues(&self) -> bool {
        let kind = self.plan.target.kind();
        let by_choice = matches!(self.plan.strategy, WaitStrategy::HandOff { .. });
        self.plan.wait != Wait::Not
            && self.services.backend.info().supports_queue
            && (by_choice && kind.hands_off() || kind.has_strict_queue())
    }

    /// How long attempts ask to keep a place in the queue, if they want one.
    pub(super) fn place(&self) -> Option<Duration> {
        self.queues()
            .then(|| self.heartbeat() * 3 + self.services.call_timeout())
    }

    pub(super) fn listen(&self) -> Option<WakeStream> {
        let hints = self.services.backend.listen(&self.plan.target)?;
        hints.claim(&self.state.ask.owner);
        Some(hints)
    }

    pub(super) async fn subscribe(&self, deadline: Instant) -> Result<Option<WakeStream>, Stop> {
        self.lives_until(deadline)?;
        let call = self.services.backend.subscribe(&self.plan.target, deadline);
        match self.services.within(deadline, call).await {
            Ok(hints) => {
                hints.claim(&self.state.ask.owner);
                Ok(Some(hints))
            }
            Err(error) => {
                tracing::debug!(lock = %self.plan.target, %error, "cannot listen for releases, polling");
                Ok(None)
            }
        }
    }

    /// Stops listening as the winner. If several can hold at once, the hint passes to the next
    /// waiter, because there may be room for that one too.
    pub(super) fn stop_listening(&mut self) {
        if let Some(hints) = self.state.hints.take()
            && self.plan.target.kind().mode() == Mode::Exclusive
        {
            hints.won();
        }
    }

    /// Waits until it is time to check again. Returns the token of a pushed grant, if one came.
    pub(super) async fn pause(
        &mut self,
        failure: &AttemptFailure,
    ) -> Result<Option<FencingToken>, Stop> {
        let pause = self.next_pause(self.state.hints.is_some(), failure);
        let until = Instant::now() + pause;
        let until = self.limit().map_or(until, |limit| limit.min(until));
        self.lives_until(until)?;
        let Some(hints) = &mut self.state.hints else {
            tokio::time::sleep_until(until).await;
            return Ok(None);
        };
        // The owner id may have changed since the last pause.
        hints.claim(&self.state.ask.owner);
        Ok(match tokio::time::timeout_at(until, hints.next()).await {
            Ok(Wake::Granted { token }) => Some(token),
            Ok(wake) => {
                self.interrupted |= matches!(wake, Wake::Resync);
                None
            }
            Err(_) => None,
        })
    }

    /// How often to check without a wake-up. A pushed grant is worth what is left since the last
    /// check, so in a queue that must be recent compared with the lease.
    pub(super) fn heartbeat(&self) -> Duration {
        let often = (self.plan.lease / 12).max(SHORTEST_HEARTBEAT);
        match self.plan.strategy {
            WaitStrategy::HandOff { heartbeat, .. } => heartbeat.min(often),
            WaitStrategy::Notify { heartbeat: pause } | WaitStrategy::Poll { max: pause, .. } => {
                if self.queues() {
                    pause.min(often)
                } else {
                    pause
                }
            }
        }
    }

    fn next_pause(&mut self, listening: bool, failure: &AttemptFailure) -> Duration {
        let by_choice = matches!(self.plan.strategy, WaitStrategy::Poll { .. });
        let strategy = if listening {
            self.plan.strategy
        } else {
            self.polling()
        };
        let pause = match (strategy, failure) {
            (WaitStrategy::Poll { .. }, AttemptFailure::Queued { ahead, .. }) if !by_choice => {
                self.pause_in_line(*ahead)
            }
            (WaitStrategy::HandOff { .. } | WaitStrategy::Notify { .. }, _) => {
                let heartbeat = self.heartbeat();
                jitter(heartbeat * 3 / 4, heartbeat * 5 / 4)
            }
            (WaitStrategy::Poll { min, max }, _) => {
                let doubled = min.saturating_mul(2_u32.saturating_pow(self.pauses.min(16).into()));
                self.pauses = self.pauses.saturating_add(1);
                // A waiter that cannot listen keeps its chance however long it has waited.
                jitter(min / 2, if by_choice { doubled.min(max) } else { max })
            }
        };
        // Without heartbeats a waiter loses its place in the queue, and a grant expires if the
        // waiter does not check.
        let pause = match failure {
            AttemptFailure::Queued { .. } => pause.min(self.heartbeat() * 5 / 4),
            AttemptFailure::Busy(_) | AttemptFailure::Failed(_) => pause,
        };
        match failure {
            // Others are ahead. When the blocking lease expires, it is their turn to notice.
            AttemptFailure::Queued { ahead: 1.., .. } => pause,
            // Only the holder's lease may be blocking. The jitter keeps a crowd apart.
            AttemptFailure::Busy(Some(remaining))
            | AttemptFailure::Queued {
                remaining: Some(remaining),
                ..
            } => pause.min(*remaining + jitter(Duration::from_millis(1), Duration::from_millis(5))),
            AttemptFailure::Busy(None)
            | AttemptFailure::Queued {
                remaining: None, ..
            } => pause,
            AttemptFailure::Failed(_) => pause.min(jitter(
                Duration::from_millis(20),
                Duration::from_millis(200),
            )),
        }
    }

    /// The pause of a polling waiter in the queue. Hand-offs leave a free lock to the next in the
    /// queue, which polls most often. All poll less often while the queue does not move.
    fn pause_in_line(&mut self, ahead: u64) -> Duration {
        let places = u16::try_from(ahead).unwrap_or(u16::MAX).saturating_add(1);
        if std::mem::replace(&mut self.last_position, places) != places {
            self.pauses = 0;
        }
        let pause = POLL_STEP.saturating_mul(places.into()) * 2_u32.pow(self.pauses.min(8).into());
        self.pauses = self.pauses.saturating_add(1);
        let pause = pause.min(LONGEST_POLL);
        jitter(pause / 2, pause * 3 / 2)
    }

    fn polling(&self) -> WaitStrategy {
        match self.plan.strategy {
            WaitStrategy::HandOff { .. } | WaitStrategy::Notify { .. } => WaitStrategy::POLL,
            poll @ WaitStrategy::Poll { .. } => poll,
        }
    }
}
