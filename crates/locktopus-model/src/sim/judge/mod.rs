//! Looks at everything that happens, and says what must not have happened.

mod beliefs;
mod replies;
mod stalls;
mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;

use crate::sim::ask::{Ask, Holder, Mode, Owner, Waiter};
use crate::sim::counts::Counts;
use crate::sim::node::Node;
use crate::sim::rules::Micros;
use crate::sim::setup::Setup;
use crate::sim::strangers::Heard;
use crate::sim::wire::{Ran, Wire};
pub(super) use beliefs::Belief;
use stalls::Stalls;

/// What must always hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// At no time do two processes believe that they hold a lock that they cannot share.
    MutualExclusion,
    /// Nobody believes longer than the server keeps the lock for it.
    ValidityWithinLease,
    /// Every grant's tokens are greater than all before.
    TokensIncrease,
    /// A holder has the tokens that it was granted, and the same ones every time.
    TokenOfGrant,
    /// A lock changes its owner only when it is free, or by its owner's release.
    OwnerChange,
    /// Nobody holds and waits at once.
    OnePlace,
    /// Holders on the server never exclude each other.
    HoldersShare,
    /// Permits are neither lost nor invented.
    PermitsKept,
    /// Only the owner's own requests move an expiry.
    OnlyOwnerExtends,
    /// No request shortens a lease.
    NeverShortened,
    /// Whatever is written goes away by itself.
    EverythingExpires,
    /// After a release nothing mentions its owner.
    ReleaseIsFinal,
    /// Answers say what is.
    TruthfulAnswer,
    /// A pushed grant is one.
    TruthfulPush,
    /// Nobody is granted a lock before those who waited for it.
    NoBarging,
    /// A lock that is free goes to those who wait.
    HandedOn,
    /// A request that comes too late does nothing.
    LateRefused,
    /// Asked for as another kind, a name in use is refused, and nothing changes.
    KindsApart,
    /// Scripts touch the keys they were given.
    DeclaredKeys,
    /// Scripts read the clock once at most: it may go on meanwhile, and what one reading decided the next would undo.
    OneClockReading,
    /// Scripts do not fail, but for reasons of the server's.
    ScriptRuns,
    /// A lock that is free and wanted is taken before long.
    NoStall,
    /// A waiter that repeats its attempt in time keeps its place.
    PlaceKept,
    /// A waiter shows life every now and then: servers do nothing when a lease ends, so that waiters must look.
    ShowsLife,
    /// In the end everything has been given back.
    NothingLeft,
}

/// An invariant that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which one.
    pub invariant: Invariant,
    /// What happened.
    pub what: String,
    /// When, in microseconds of virtual time.
    pub at_micros: i64,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ms, us) = (self.at_micros / 1_000, self.at_micros % 1_000);
        write!(f, "{:?} at {ms}.{us:03} ms: {}", self.invariant, self.what)
    }
}

/// How a schedule ended.
pub(super) type Verdict = Result<(), Violation>;

/// What a server looked like before a script ran.
#[derive(Debug)]
pub(super) struct Before {
    holders: Vec<Holder>,
    waiters: Vec<Waiter>,
    /// The free permits of a semaphore.
    free: Option<i64>,
    listening: Rc<BTreeSet<Vec<u8>>>,
    /// The lock is left to those who cannot queue.
    open: bool,
    /// Server time in milliseconds.
    micros: i64,
}

/// How much later than at its beginning a script may read the clock, in microseconds.
const SCRIPT: i64 = 10_000;

/// One script that ran.
pub(super) struct Execution<'a> {
    pub(super) now: Micros,
    pub(super) ask: &'a Ask,
    pub(super) ran: &'a Ran,
    pub(super) before: Before,
}

/// The judge of one schedule.
#[derive(Debug)]
pub(super) struct Judge {
    violation: Option<Violation>,
    beliefs: BTreeMap<Owner, Belief>,
    /// First tokens of grants, by owner.
    granted: BTreeMap<Owner, i64>,
    /// Tokens that holders worked with last, by owner.
    used: BTreeMap<Owner, i64>,
    /// How many tokens a grant reserves.
    block: i64,
    top_token: i64,
    /// All permits of a semaphore.
    total: i64,
    /// Failovers may lose locks; then only tokens are promised.
    exclusive: bool,
    given_up: BTreeSet<Owner>,
    /// Who was told that it has a place.
    placed: BTreeSet<Owner>,
    calm: bool,
    stalls: Stalls,
}

impl Judge {
    pub(super) fn new(setup: &Setup) -> Self {
        let exclusive = setup.faults.failovers == 0;
        Self {
            violation: None,
            beliefs: BTreeMap::new(),
            granted: BTreeMap::new(),
            used: BTreeMap::new(),
            block: setup.rules.tokens,
            top_token: 0,
            total: setup.rules.total,
            exclusive,
            given_up: BTreeSet::new(),
            placed: BTreeSet::new(),
            calm: setup.trouble.is_none(),
            stalls: Stalls::new(setup),
        }
    }

    /// The first violation.
    pub(super) fn violation(&self) -> Option<Violation> {
        self.violation.clone()
    }

    fn fails(&mut self, now: Micros, invariant: Invariant, what: impl FnOnce() -> String) {
        if self.violation.is_none() {
            self.violation = Some(Violation {
                invariant,
                what: what(),
                at_micros: now,
            });
        }
    }

    fn check(
        &mut self,
        holds: bool,
        now: Micros,
        invariant: Invariant,
        what: impl FnOnce() -> String,
    ) {
        if !holds {
            self.fails(now, invariant, what);
        }
    }

    /// Takes note of a server before a script runs.
    pub(super) fn look(&self, wire: &Wire, node: &Node) -> Before {
        let server = &node.server;
        Before {
            holders: wire.layout.holders(server),
            waiters: wire.layout.waiters(server),
            free: wire.layout.free(server),
            listening: node.heard(),
            open: wire.layout.is_open(server),
            micros: server.clock,
        }
    }

    /// Whether the name is in use: somebody holds it, or there is a number.
    pub(super) fn is_in_use(&self, wire: &Wire, node: &Node) -> bool {
        let seen = self.look(wire, node);
        seen.free.is_some() || seen.live().next().is_some()
    }

    /// Judges what came of asking for the name as another kind.
    pub(super) fn met(&mut self, now: Micros, heard: &Heard, before: &str, after: &str) {
        self.check(heard.is_turned_away(), now, Invariant::KindsApart, || {
            format!("a name in use as another kind answered {heard:?}")
        });
        self.check(before == after, now, Invariant::KindsApart, || {
            format!("{heard:?} changed\n{before}\nto\n{after}")
        });
    }

    /// Judges a script by what it did.
    pub(super) fn executed(
        &mut self,
        execution: &Execution<'_>,
        wire: &Wire,
        node: &Node,
        counts: &mut Counts,
    ) {
        let after = self.look(wire, node);
        self.judge_run(execution, &after);
        self.judge_holders(execution, &after);
        self.judge_queue(execution, &after);
        self.judge_answer(execution, &after);
        self.judge_grants(execution, &after, wire, counts);
        let immortal = wire.layout.immortal(&node.server);
        self.check(
            immortal.is_empty(),
            execution.now,
            Invariant::EverythingExpires,
            || format!("{immortal:?} will never expire"),
        );
    }

    /// A process has given up an owner.
    pub(super) fn gave_up(&mut self, owner: &Owner) {
        self.given_up.insert(owner.clone());
    }

    /// Everything should have been given back.
    pub(super) fn at_the_end(&mut self, now: Micros, wire: &Wire, nodes: &[Node]) {
        let Some(node) = nodes.last() else {
            return;
        };
        let mut holders = wire.layout.holders(&node.server);
        holders.retain(|holder| !holder.over);
        self.check(holders.is_empty(), now, Invariant::NothingLeft, || {
            format!("somebody still holds the lock: {holders:?}")
        });
        let alive = |waiter: &Waiter| waiter.alive_until > node.server.clock;
        let waiters: Vec<Waiter> = wire
            .layout
            .waiters(&node.server)
            .into_iter()
            .filter(alive)
            .collect();
        self.check(waiters.is_empty(), now, Invariant::NothingLeft, || {
            format!("somebody still waits: {waiters:?}")
        });
        let beliefs = self
            .beliefs
            .values()
            .filter(|belief| belief.until > now)
            .count();
        self.check(beliefs == 0, now, Invariant::NothingLeft, || {
            "somebody still believes that it holds the lock".to_owned()
        });
    }
}

impl Before {
    /// Those whose time is not over.
    fn live(&self) -> impl Iterator<Item = &Holder> {
        self.holders.iter().filter(|holder| !holder.over)
    }

    fn holder(&self, owner: &Owner) -> Option<&Holder> {
        self.live().find(|holder| holder.owner == *owner)
    }

    /// How many are written down whose time is over.
    fn over(&self) -> usize {
        self.holders.iter().filter(|holder| holder.over).count()
    }

    fn waiter(&self, owner: &Owner) -> Option<&Waiter> {
        self.waiters.iter().find(|waiter| waiter.owner == *owner)
    }

    /// Whether this waiter is certainly alive and listens. A script's clock may go on while it runs.
    /// A waiter that is set aside hears nothing until it asks again.
    fn is_ready(&self, waiter: &Waiter) -> bool {
        let alive = waiter.alive_until > self.micros + SCRIPT;
        alive && !waiter.aside && self.listening.contains(&waiter.inbox)
    }

    /// Whether somebody could hold beside those who do.
    fn has_room(&self, mode: Mode, permits: i64) -> bool {
        match self.free {
            Some(free) => free >= permits,
            None => self
                .holders
                .iter()
                .all(|holder| holder.mode.shares_with(mode)),
        }
    }
}
