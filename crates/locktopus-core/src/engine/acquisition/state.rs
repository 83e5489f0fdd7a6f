//! The traces of an acquisition at the backend: attempts under way, a place in the queue.

use std::sync::Arc;
use std::time::Duration;

use locktopus_contract::clock::{self, BootInstant};
use locktopus_contract::{AcquireAttempt, OwnerId, PlaceHint, TokenRetention, WakeStream};
use tokio::time::Instant;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::engine::holding::reaper::PendingRelease;
use crate::engine::holding::services::Services;

/// What the backend may have of one acquisition. Its owner must see that all of it is given back or
/// used.
#[derive(Debug)]
pub(crate) struct AcquisitionState {
    /// The last attempt, or the next one. All have the same owner id, lease, permits and tokens.
    pub(super) ask: AcquireAttempt,
    /// An attempt may hold the lock, or a place in the queue. The token makes a shutdown wait until
    /// this has been handed to the reaper.
    pub(super) unsettled: Option<TaskTrackerToken>,
    /// An attempt is under way.
    pub(super) in_flight: bool,
    /// An earlier attempt got no answer; it may still arrive.
    pub(super) late_attempt: bool,
    /// The place in the queue that the last answered attempt confirmed.
    pub(super) place: Option<QueuePlace>,
    pub(super) hints: Option<WakeStream>,
    pub(super) failing_since: Option<Instant>,
}

/// What others must know of an acquisition to clean up after it: the owner id of its attempts, how
/// long the backend may keep what they take, and how long it keeps their tokens.
pub(super) type Cleanup = (OwnerId, Duration, Option<TokenRetention>);

/// A confirmed place in the queue, and what a pushed grant must be measured by.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueuePlace {
    /// When the attempt that confirmed it was sent. A grant pushed later happened later, so
    /// validity may count from here.
    pub(super) sent: BootInstant,
    /// The last token at that time. A grant with a token that is not greater is an old message.
    pub(super) last_token: u64,
}

impl AcquisitionState {
    pub(super) fn new(ask: AcquireAttempt) -> Self {
        Self {
            ask,
            unsettled: None,
            in_flight: false,
            late_attempt: false,
            place: None,
            hints: None,
            failing_since: None,
        }
    }

    /// Whether an acquisition that asks for this can go on here, under this owner id. It may do
    /// with other tokens than it would ask for: with fewer it passes the lock on less often.
    pub(super) fn fits(&self, ask: &AcquireAttempt) -> bool {
        let [own, other] = [&self.ask, ask].map(|ask| {
            let AcquireAttempt { lease, place, .. } = ask;
            (lease, place, ask.permits, ask.token_retention)
        });
        own == other
    }

    /// Whether dropping this leaves a release to do.
    pub(super) fn owes(&self) -> bool {
        self.unsettled.is_some() || self.late_attempt
    }

    /// The backend has neither a hold nor a place that nobody answers for.
    pub(super) fn settled(&mut self) {
        (self.unsettled, self.place) = (None, None);
    }

    /// Since when attempts fail, after one that began at `begun`. A backend that says when it is
    /// ready fails from then on, if that is before the limit.
    pub(super) fn fails(
        &mut self,
        begun: Instant,
        ready_in: Option<Duration>,
        limit: Option<Instant>,
    ) -> Instant {
        let since = self.failing_since.get_or_insert(begun);
        let ready = ready_in.map(clock::timer_in);
        let in_time = ready.filter(|ready| limit.is_none_or(|limit| *ready < limit));
        *since = in_time.map_or(*since, |ready| ready.max(*since));
        *since
    }

    /// Makes it fit to be taken up by somebody else: an attempt whose answer nobody waits for may
    /// arrive late.
    pub(crate) fn left_behind(mut self) -> Self {
        self.late_attempt |= std::mem::take(&mut self.in_flight);
        self
    }

    /// For how long the backend may keep what an attempt that is sent now takes.
    pub(super) fn lasts(&self, services: &Services) -> Duration {
        self.ask.lease + self.ask.place.unwrap_or_default() + services.call_timeout()
    }

    /// What others must know of it if it stalls.
    pub(super) fn cleanup(&self, services: &Services) -> Cleanup {
        let AcquireAttempt { owner, .. } = &self.ask;
        (
            owner.clone(),
            self.lasts(services),
            self.ask.token_retention,
        )
    }

    /// Leaves what there may be to the reaper.
    pub(crate) fn give_up(self, services: &Arc<Services>) {
        if !self.owes() {
            return;
        }
        let (lasts, late_attempt) = (self.lasts(services), self.in_flight || self.late_attempt);
        let AcquireAttempt {
            target,
            owner,
            lease,
            tokens,
            permits,
            token_retention,
            ..
        } = self.ask;
        let mut pending = PendingRelease::new(target, owner, lasts, late_attempt);
        let release = &mut pending.release;
        (release.permits, release.token_retention) = (permits, token_retention);
        // Makes the place in the queue that attempts may have taken easy to find.
        release.place_hint = self.ask.place.map(|place| PlaceHint {
            place,
            lease,
            tokens,
        });
        services.reap(pending);
    }
}
