//! What an owner is answered about a hold that it got, or that is not there.

use locktopus_core::{AttemptOutcome, ExtendOutcome, FencingToken, LockTarget, Mode};

pub(super) fn granted(target: &LockTarget, token: u64) -> AttemptOutcome {
    let token = FencingToken::new(token).filter(|_| target.kind().has_tokens());
    AttemptOutcome::Granted { token }
}

/// What became of a hold that is not there. Other readers or permits are no reason for this one to be gone.
pub(super) fn gone(mode: Mode, taken: bool) -> ExtendOutcome {
    if mode == Mode::Exclusive && taken {
        ExtendOutcome::TakenOver
    } else {
        ExtendOutcome::Missing
    }
}
