//! The subject of one list of random requests, and the requests.

use std::time::Duration;

use locktopus_core::{
    CounterAction, CounterRequest, ExtendRequest, LockKind, LockName, LockTarget, OwnerId,
    PlaceHint, ReleaseRequest,
};
use locktopus_model::Rng;
use locktopus_protocol::{GuardedWriter, RedisBackend};
use tokio::time::Instant;

use super::focus::{Focus, Mode, any_kind, kind_named};

/// Leases far apart from each other and from sums of the pauses, since the two servers have two
/// clocks.
pub(super) const LEASES: [u64; 3] = [60, 100, 200];
pub(super) const PLACES: [u64; 2] = [50, 250];

/// A process with its backend.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) mode: Mode,
    pub(super) backend: RedisBackend,
    pub(super) writer: GuardedWriter,
}

/// The subject of one list of calls: a few names, mostly of one kind, and a few owners.
pub(super) struct Scene<'a> {
    pub(super) focus: &'a Focus,
    pub(super) names: [&'static str; 2],
    pub(super) owners: Vec<OwnerId>,
    pub(super) permit_owners: Vec<OwnerId>,
    pub(super) operations: Vec<OwnerId>,
    pub(super) processes: Vec<&'a Process>,
}

/// An owner always wants the same number.
pub(super) fn permits(target: &LockTarget, owner: &OwnerId) -> u32 {
    let counted = target.kind().mode() == locktopus_core::Mode::Permits;
    if counted && owner.expose().last().is_some_and(|last| last % 2 == 0) {
        2
    } else {
        1
    }
}

impl Scene<'_> {
    pub(super) fn target(&self, rng: &mut Rng) -> LockTarget {
        let name = LockName::new(*rng.pick(&self.names)).unwrap();
        let kind = match (&self.focus.kind, rng.below(100)) {
            (_, 0..8) => any_kind(rng),
            (LockKind::Read | LockKind::Write, 8..40) => LockKind::Write,
            (LockKind::Read | LockKind::Write, 40..70) => LockKind::Read,
            (kind, _) => kind.clone(),
        };
        LockTarget::new(name, kind)
    }

    /// One of several locks taken at once.
    pub(super) fn member(&self, rng: &mut Rng, name: &str) -> LockTarget {
        let kind = kind_named(rng.pick::<&str>(&["lock", "mutex"]));
        LockTarget::new(LockName::new(name).unwrap(), kind)
    }

    pub(super) fn owner(&self, rng: &mut Rng, kind: &LockKind) -> OwnerId {
        let owners = match kind {
            LockKind::PermitSemaphore => &self.permit_owners,
            _ => &self.owners,
        };
        rng.pick(owners).clone()
    }

    pub(super) fn release(
        &self,
        rng: &mut Rng,
        target: LockTarget,
        deadline: Instant,
    ) -> ReleaseRequest {
        let owner = self.owner(rng, target.kind());
        let hint = PlaceHint {
            place: Duration::from_secs(*rng.pick(&PLACES)),
            lease: Duration::from_secs(*rng.pick(&LEASES)),
            tokens: u32::from(target.kind().has_tokens()),
        };
        ReleaseRequest {
            permits: permits(&target, &owner),
            place_hint: rng.permille(500).then_some(hint),
            ..ReleaseRequest::new(target, owner, deadline)
        }
    }

    pub(super) fn extension(&self, rng: &mut Rng, target: LockTarget) -> ExtendRequest {
        let owner = self.owner(rng, target.kind());
        let keep = Duration::from_secs(*rng.pick(&LEASES) * 2);
        ExtendRequest {
            permits: permits(&target, &owner),
            keep_token: rng.permille(300).then_some(keep),
            ..ExtendRequest::new(target, owner, Duration::from_secs(*rng.pick(&LEASES)))
        }
    }

    pub(super) fn counter(
        &self,
        rng: &mut Rng,
        target: LockTarget,
        deadline: Instant,
    ) -> CounterRequest {
        let action = match rng.below(9) {
            0 | 1 => CounterAction::Read,
            2 | 3 => CounterAction::Initialise(1 + rng.below(3)),
            4 => CounterAction::Resize(rng.below(5)),
            5 => CounterAction::Add(rng.between(-1, 3)),
            6 => CounterAction::Drain,
            7 => CounterAction::CountDown,
            _ => CounterAction::Delete,
        };
        let per = Duration::from_secs(*rng.pick(&LEASES));
        let rate = |permits, keep| CounterAction::Rate { permits, per, keep };
        let action = match (target.kind(), action) {
            (LockKind::RateLimiter, CounterAction::Initialise(permits)) => rate(permits, true),
            (LockKind::RateLimiter, CounterAction::Resize(permits)) => rate(permits, false),
            (_, action) => action,
        };
        let repeated = rng.pick(&self.operations).clone();
        let operation = if rng.permille(300) {
            repeated
        } else {
            OwnerId::generate()
        };
        CounterRequest {
            target,
            operation,
            action,
            deadline,
        }
    }
}
