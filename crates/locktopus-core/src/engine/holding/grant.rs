//! A grant of the backend.

use std::time::Duration;

use locktopus_contract::clock::BootInstant;
use locktopus_contract::{FencingToken, LockTarget, OwnerId, SafetyMode, TokenRetention};

/// The content of a grant.
pub(crate) struct Grant {
    pub(crate) target: LockTarget,
    pub(crate) owner: OwnerId,
    pub(crate) token: Option<FencingToken>,
    pub(crate) permits: u32,
    /// How many tokens were reserved from `token` on: how many members of a cohort may have a turn.
    pub(crate) turns: u32,
    pub(crate) lease: Duration,
    pub(crate) renewed: bool,
    pub(crate) hold_until: Option<BootInstant>,
    pub(crate) granted_at: BootInstant,
    pub(crate) valid_until: BootInstant,
    pub(crate) late_attempt: bool,
    pub(crate) safety: SafetyMode,
    /// How long to remember tokens, if the request set it.
    pub(crate) retention: Option<TokenRetention>,
}
