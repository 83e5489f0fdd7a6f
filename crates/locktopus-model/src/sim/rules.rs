//! What the clients of a schedule do the same way, and what they may be made to do wrong.

use crate::Rng;
use crate::sim::ask::Mode;
use crate::sim::kind::Kind;

/// Microseconds.
pub(super) type Micros = i64;

pub(super) const MS: Micros = 1_000;

/// Short leases do not make waiters ask more often than this.
const SHORTEST_BEAT: Micros = 50 * MS;

/// Bounds of the pauses of those who poll.
pub(super) const SHORTEST_POLL: Micros = 5 * MS;
pub(super) const LONGEST_POLL: Micros = 100 * MS;

/// How waiters wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strategy {
    /// In the queue; with `confirm`, a pushed grant is never believed.
    HandOff { confirm: bool },
    /// For announcements.
    Notify,
    /// By asking again and again.
    Poll,
}

/// Settings of a schedule's clients.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    pub(super) lease: Micros,
    /// Before it is cut to a part of the lease.
    pub(super) heartbeat: Micros,
    pub(super) call_timeout: Micros,
    pub(super) drift_ppm: i64,
    pub(super) clock_step: Micros,
    /// How long failing attempts are repeated.
    pub(super) outage: Micros,
    /// How long channels without waiters stay subscribed.
    pub(super) linger: Micros,
    pub(super) kind: Kind,
    /// All permits of a semaphore; 1 for locks.
    pub(super) total: i64,
    /// Fencing tokens that a grant reserves.
    pub(super) tokens: i64,
    /// How long a lease is kept after its first release; 0 for not at all.
    pub(super) keep: Micros,
    pub(super) flaw: Option<Flaw>,
}

impl Rules {
    /// For how long a lease may be believed after its request was sent.
    pub(super) fn validity(&self, lease: Micros) -> Micros {
        let margin = if self.is(Flaw::NoMargin) {
            0
        } else {
            self.margin(lease)
        };
        (lease - margin).max(0)
    }

    pub(super) fn margin(&self, lease: Micros) -> Micros {
        lease * self.drift_ppm / 1_000_000 + self.clock_step + 2 * MS
    }

    /// In which mode a lock is wanted this time.
    pub(super) fn draw_mode(&self, rng: &mut Rng) -> Mode {
        match self.kind {
            Kind::Lock | Kind::Mutex | Kind::Fair => Mode::Exclusive,
            Kind::ReadWrite if rng.permille(650) => Mode::Read,
            Kind::ReadWrite => Mode::Write,
            Kind::Semaphore | Kind::Permits => Mode::Permits,
        }
    }

    /// Whether such a waiter stands in the queue. Those of a fair lock do whatever their strategy.
    pub(super) fn queues(&self, strategy: Strategy) -> bool {
        matches!(strategy, Strategy::HandOff { .. }) || self.kind == Kind::Fair
    }

    /// How often such a waiter looks without being told.
    pub(super) fn beat(&self, strategy: Strategy) -> Micros {
        let often = (self.lease / 12).max(SHORTEST_BEAT);
        let pause = match strategy {
            Strategy::Poll => LONGEST_POLL,
            Strategy::HandOff { .. } | Strategy::Notify => self.heartbeat,
        };
        if self.queues(strategy) {
            pause.min(often)
        } else {
            pause
        }
    }

    /// How long the place of such a waiter is kept.
    pub(super) fn place(&self, strategy: Strategy) -> Micros {
        let beat = self.beat(strategy);
        if self.is(Flaw::ShortPlace) {
            beat / 2
        } else {
            beat * 3 + self.call_timeout
        }
    }

    /// How much of a lease must be left for it to be as good as one that was just granted.
    pub(super) fn least_validity(&self, renewed: bool) -> Micros {
        if renewed {
            self.lease / 2
        } else {
            self.lease * 9 / 10
        }
    }

    /// The longest place that anybody has.
    pub(super) fn longest_place(&self) -> Micros {
        self.place(Strategy::HandOff { confirm: false })
    }

    pub(super) fn is(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }
}

/// Ways in which clients can be wrong. Each must be noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// Validity of a grant counts from its answer.
    ValidFromAnswer,
    /// Validity of a renewal counts from its answer.
    RenewedFromAnswer,
    /// Validity is the whole lease.
    NoMargin,
    /// A pushed grant is believed for a whole lease from its arrival.
    ValidFromPush,
    /// A pushed grant is believed whatever its token.
    OldPush,
    /// An answer is believed that comes after the call's time was over.
    LateAnswer,
    /// The lock is believed in until somebody says that it is lost.
    NeverExpires,
    /// What a cancelled attempt may have got is not given back.
    NeverCancels,
    /// A background release that got no answer is not repeated.
    CancelsOnce,
    /// After an attempt without answer, a release is not repeated for the attempt that may still come.
    NoSecondLook,
    /// A dropped guard gives nothing back.
    DropsNothing,
    /// No look between subscribing and waiting.
    NoLookAfterSubscribing,
    /// No look after messages may have been lost.
    NoResync,
    /// A place is kept for less than a heartbeat.
    ShortPlace,
    /// The next acquisition uses the owner id of one that was given up.
    SameOwner,
    /// Heartbeats stop once there is a place.
    NoHeartbeat,
    /// A lease that was kept is handed out again whatever is left of it, as if it were new.
    KeepsExpired,
    /// Those who get a kept lease one after the other have the same token.
    KeepsToken,
    /// A lease is kept although others want it.
    KeepsWanted,
}
