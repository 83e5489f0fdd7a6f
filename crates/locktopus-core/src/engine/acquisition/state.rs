//! What an acquisition has at the backend, or may have: an owner id, attempts under way, a place in the queue.

use std::sync::Arc;
use std::time::Duration;

use locktopus_contract::clock::{self, BootInstant};
use locktopus_contract::{LockTarget, OwnerId, Sought, TokenRetention, WakeStream};
use tokio::time::Instant;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::engine::holding::reaper::PendingRelease;
use crate::engine::holding::services::Services;

/// What the backend may have of one acquisition. Its owner must see that all of it is given back or used.
#[derive(Debug)]
pub(crate) struct AcquisitionState {
    pub(super) owner: OwnerId,
    pub(super) terms: Terms,
    /// An attempt of `owner` may hold the lock, or a place in the queue. The token makes a shutdown wait until
    /// this has been handed to the reaper.
    pub(super) unsettled: Option<TaskTrackerToken>,
    /// An attempt is under way.
    pub(super) in_flight: bool,
    /// An earlier attempt of `owner` got no answer; it may still arrive.
    pub(super) late_attempt: bool,
    /// The place in the queue that the last answered attempt confirmed.
    pub(super) place: Option<Place>,
    pub(super) hints: Option<WakeStream>,
    pub(super) failing_since: Option<Instant>,
}

/// What every attempt of one owner id asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Terms {
    pub(super) lease: Duration,
    /// For how long to keep a place in the queue, if one is wanted.
    pub(super) place: Option<Duration>,
    pub(super) permits: u32,
    pub(super) tokens: u32,
    /// Whether to be told when a lock that is held is wanted.
    pub(super) recall: bool,
    /// How long to remember the token, if the request said so.
    pub(super) retention: Option<TokenRetention>,
}

impl Terms {
    /// Whether somebody who asks for these can go on where somebody who asked for the others stood. With fewer tokens
    /// than it would have asked for it passes the lock on less often, which is no harm.
    pub(super) fn same_but_tokens(&self, others: &Self) -> bool {
        let tokens = others.tokens;
        Self { tokens, ..*self } == *others
    }

    /// What makes the place in the queue that attempts may have taken easy to find.
    fn sought(&self) -> Option<Sought> {
        let Self { lease, tokens, .. } = *self;
        self.place.map(|place| Sought {
            place,
            lease,
            tokens,
        })
    }
}

/// A confirmed place in the queue, and what a pushed grant must be measured by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// When the attempt that confirmed it was sent. A grant pushed later happened later, so validity may count
    /// from here.
    pub(super) sent: BootInstant,
    /// The last token at that time. A grant with a token that is not greater is an old message.
    pub(super) fence: u64,
}

impl AcquisitionState {
    pub(super) fn new(owner: OwnerId) -> Self {
        Self {
            owner,
            terms: Terms::default(),
            unsettled: None,
            in_flight: false,
            late_attempt: false,
            place: None,
            hints: None,
            failing_since: None,
        }
    }

    /// Notes that an attempt is sent, and says when.
    pub(super) fn sends(&mut self, token: TaskTrackerToken) -> BootInstant {
        (self.unsettled, self.in_flight) = (Some(token), true);
        clock::now()
    }

    /// Whether dropping this leaves a release to do.
    pub(super) fn owes(&self) -> bool {
        self.unsettled.is_some() || self.late_attempt
    }

    /// The backend has neither a hold nor a place that nobody answers for.
    pub(super) fn settled(&mut self) {
        (self.unsettled, self.place) = (None, None);
    }

    /// Since when attempts fail, after one that began at `begun`. A backend that says when it is ready
    /// fails from then on, if that is before the limit.
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

    /// Makes it fit to be taken up by somebody else: an attempt whose answer nobody waits for may arrive late.
    pub(crate) fn left_behind(mut self) -> Self {
        self.late_attempt |= std::mem::take(&mut self.in_flight);
        self
    }

    /// For how long the backend may keep what an attempt that is sent now takes.
    pub(super) fn lasts(&self, services: &Services) -> Duration {
        let place = self.terms.place.unwrap_or_default();
        self.terms.lease + place + services.call_timeout()
    }

    /// Leaves what there may be to the reaper.
    pub(crate) fn give_up(self, services: &Arc<Services>, target: &LockTarget) {
        if !self.owes() {
            return;
        }
        services.reap(PendingRelease {
            target: target.clone(),
            permits: self.terms.permits,
            until: clock::now() + self.lasts(services),
            owner: self.owner,
            late_attempt: self.in_flight || self.late_attempt,
            retention: self.terms.retention,
            linger_until: None,
            sought: self.terms.sought(),
            last: true,
        });
    }
}
