//! From the options of a request to a plan, before anything is sent.

use std::time::Duration;

use super::LockRequest;
use crate::contract::kind::LockTarget;
use crate::contract::mode::Mode;
use crate::contract::option_error::OptionError;
use crate::contract::request::MAX_PERMITS;
use crate::contract::token_retention::TokenRetention;
use crate::engine::acquisition::{Plan, Wait, lease_cache_options};
use crate::engine::error::LockError;
use crate::handles::any_guard::AnyGuard;

impl<G: AnyGuard> LockRequest<G> {
    pub(crate) fn target(&self) -> Result<LockTarget, LockError> {
        self.name.target(&self.engine, &self.kind)
    }

    pub(super) fn plan(&self, wait: Wait) -> Result<Plan, LockError> {
        if self.engine.closing.is_cancelled() {
            return Err(LockError::ShutDown);
        }
        let settings = &self.engine.settings;
        let (option, lease) = match (self.fixed_lease, self.renewed_lease) {
            (Some(lease), _) => ("fixed_lease", lease),
            (None, lease) => ("renewed_lease", lease.unwrap_or(settings.renewed_lease)),
        };
        if self.max_hold.is_some_and(|hold| hold.is_zero()) {
            return Err(
                OptionError::new("max_hold", Duration::ZERO, "must be longer than zero").into(),
            );
        }
        let retention = self.token_retention.or(settings.token_retention);
        let mut plan = Plan {
            target: self.target()?,
            lease: settings.check_lease(option, lease)?,
            permits: self.checked_permits()?,
            renewed: self.fixed_lease.is_none(),
            max_hold: self.max_hold,
            keep: Duration::ZERO,
            retention: retention.map(TokenRetention::check).transpose()?,
            strategy: self.strategy.unwrap_or(settings.strategy).check()?,
            wait,
            cancel: self.cancel.clone(),
            progress: self.progress.clone(),
        };
        plan.keep = lease_cache_options::checked(&self.engine, &plan, self.lease_cache)?;
        Ok(plan)
    }

    pub(super) fn checked_permits(&self) -> Result<u32, OptionError> {
        let most = match self.kind.mode() {
            Mode::Permits => MAX_PERMITS,
            Mode::Exclusive | Mode::Read => 1,
        };
        if (1..=most).contains(&self.permits) {
            return Ok(self.permits);
        }
        let rule = format!("must be between 1 and {most}");
        Err(OptionError::new("permits", self.permits, rule))
    }
}
