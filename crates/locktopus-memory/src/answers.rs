//! Answers to an owner about its hold, or about a missing one, and what other owners see of it.

use locktopus_contract::{
    AttemptOutcome, ExtendOutcome, FencingToken, HolderState, LockTarget, Mode,
};
use tokio::time::Instant;

use super::table::Holder;

pub(super) fn granted(target: &LockTarget, token: u64) -> AttemptOutcome {
    let token = FencingToken::new(token).filter(|_| target.kind().has_tokens());
    AttemptOutcome::Granted { token }
}

/// The result for a missing hold. Other readers or other permits never count as having taken it
/// over.
pub(super) fn gone(mode: Mode, taken: bool) -> ExtendOutcome {
    if mode == Mode::Exclusive && taken {
        ExtendOutcome::TakenOver
    } else {
        ExtendOutcome::Missing
    }
}

/// The public view of a holder.
pub(super) fn holder_state(holder: &Holder, now: Instant) -> HolderState {
    let (holds, left) = (u64::from(holder.permits), holder.expires);
    let left = left.saturating_duration_since(now);
    let held_for = now.saturating_duration_since(holder.since);
    HolderState::new(holder.owner.clone(), holder.mode, holds, Some(left)).held_for(Some(held_for))
}
