//! From the options of a request to a plan, before anything is sent.

use std::time::Duration;

use locktopus_contract::{LockTarget, MAX_PERMITS, Mode, OptionError, TokenRetention};

use super::LockRequest;
use crate::engine::acquisition::{self, Plan, Wait, lease_cache_options};
use crate::engine::error::{LockError, Phase};
use crate::handles::any_guard::AnyGuard;

impl<G: AnyGuard> LockRequest<G> {
    /// The lock of this request: its kind, and its name with the namespace. Sends nothing.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let locks = locktopus::connect("memory:").await?;
    /// assert_eq!(locks.mutex("invoice:42").target()?.to_string(), r#"mutex "invoice:42""#);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Name`] if the name cannot be used.
    pub fn target(&self) -> Result<LockTarget, LockError> {
        self.name.target(&self.services, &self.kind)
    }

    pub(crate) fn plan(&self, wait: Wait) -> Result<Plan, LockError> {
        if !self.kind.is_held() {
            let rule = format!("nobody holds a {}", self.kind.as_str());
            return Err(OptionError::new("lock", self.target()?, rule).into());
        }
        self.checked(wait)
    }

    fn checked(&self, wait: Wait) -> Result<Plan, LockError> {
        if self.services.closing.is_cancelled() {
            return Err(LockError::ShutDown);
        }
        let target = self.target()?;
        self.services.ready_for(&target, Phase::Acquire)?;
        let settings = &self.services.settings;
        let (option, lease) = match (self.options.fixed_lease, self.options.renewed_lease) {
            (Some(lease), _) => ("fixed_lease", lease),
            (None, lease) => ("renewed_lease", lease.unwrap_or(settings.renewed_lease)),
        };
        if self.options.max_hold.is_some_and(|hold| hold.is_zero()) {
            return Err(
                OptionError::new("max_hold", Duration::ZERO, "must be longer than zero").into(),
            );
        }
        let retention = self.options.token_retention.or(settings.token_retention);
        let mut plan = Plan {
            target,
            lease: settings.check_lease(option, lease)?,
            permits: self.checked_permits()?,
            renewed: self.options.fixed_lease.is_none(),
            max_hold: self.options.max_hold,
            hold_at_least: self.checked_hold_at_least()?,
            lease_cache: Duration::ZERO,
            retention: retention.map(TokenRetention::check).transpose()?,
            strategy: self.options.strategy.unwrap_or(settings.strategy).check()?,
            wait,
            cancel: self.options.cancel.clone(),
            progress: self.options.progress.clone(),
        };
        if plan.hold_at_least.is_zero() {
            plan.lease_cache =
                lease_cache_options::checked(&self.services, &plan, self.options.lease_cache)?;
        }
        Ok(plan)
    }

    /// Takes permits that are not released. False: one attempt was allowed, and they were not to
    /// be had.
    pub(crate) async fn spend(&self, wait: Wait) -> Result<bool, LockError> {
        let plan = self.checked(wait)?;
        let Some(held) = acquisition::acquire(&self.services, &plan).await? else {
            return Ok(false);
        };
        match held.transfer() {
            Ok(_) => Ok(true),
            // It was made here, so this is its only hold: a shutdown took the permits back.
            Err(held) => held.release().await.map(|()| false),
        }
    }

    fn checked_hold_at_least(&self) -> Result<Duration, OptionError> {
        let time = self.options.hold_at_least;
        if time.is_zero() {
            return Ok(time);
        }
        let (info, settings) = (self.services.backend.info(), &self.services.settings);
        let longest = [
            Some(info.longest_linger),
            Some(settings.max_lease),
            settings.longest_lease,
        ]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or_default();
        let rule = if !self.kind.can_linger() {
            "only a `lock`, a `fair_lock` and a `mutex` are held at least for a time".to_owned()
        } else if longest.is_zero() {
            format!("the backend {} cannot leave a lock held", info.name)
        } else if time > longest {
            format!("must be at most {longest:?}, the longest lease there may be")
        } else if self.options.fixed_lease.is_some_and(|lease| lease < time) {
            "must not be longer than the fixed lease, with which the lock ends by itself".to_owned()
        } else if self.options.lease_cache.is_some_and(|keep| !keep.is_zero()) {
            "a lease that is kept for this process cannot be left to nobody as well (lease_cache)"
                .to_owned()
        } else {
            return Ok(time);
        };
        Err(OptionError::new("hold_at_least", time, rule))
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
