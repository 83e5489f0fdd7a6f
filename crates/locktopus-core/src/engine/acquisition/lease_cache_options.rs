//! Lease caching: whether a lease may be kept after its release, and for how long.
//!
//! What happens to a kept lease is the cohort's business: see
//! [`crate::engine::acquisition::cohort`].

use std::time::Duration;

use locktopus_contract::{BackendInfo, OptionError};

use super::cohort;
use super::plan::Plan;
use crate::engine::holding::services::Services;
use crate::engine::settings::Settings;

/// A lease is kept for at most this part of it: a third, when the watchdog would first renew it.
const LEASE_DIVISOR: u32 = 3;
const OPTION_NAME: &str = "lease_cache";

impl Settings {
    /// Checks the defaults of all requests.
    pub(crate) fn check_lease_cache(&self, backend: &BackendInfo) -> Result<(), OptionError> {
        let keep = self.lease_cache;
        if keep.is_zero() {
            return Ok(());
        }
        can_be_asked_back(keep, backend, self)?;
        fits(keep, self.renewed_lease)
    }
}

/// How long the lease of this plan is kept: as the request says, otherwise the default if the plan
/// allows keeping.
pub(crate) fn checked(
    services: &Services,
    plan: &Plan,
    asked: Option<Duration>,
) -> Result<Duration, OptionError> {
    let settings = &services.settings;
    let served = cohort::serves(services, plan);
    let Some(keep) = asked else {
        let usual = settings.lease_cache.min(plan.lease / LEASE_DIVISOR);
        return Ok(if served { usual } else { Duration::ZERO });
    };
    if keep.is_zero() {
        return Ok(keep);
    }
    can_be_asked_back(keep, services.backend.info(), settings)?;
    if !served {
        let rule = "only leases of `lock`, and of a `mutex` in the native layout, are kept, \
                    and not with a strategy that polls";
        return Err(OptionError::new(OPTION_NAME, keep, rule));
    }
    fits(keep, plan.lease).map(|()| keep)
}

fn can_be_asked_back(
    keep: Duration,
    backend: &BackendInfo,
    settings: &Settings,
) -> Result<(), OptionError> {
    if !backend.supports_recall {
        let rule = format!(
            "the backend {} cannot say that a kept lease is wanted",
            backend.name
        );
        return Err(OptionError::new(OPTION_NAME, keep, rule));
    }
    if settings.cohort.turns < 2 {
        let rule = "a lease that serves one acquisition (cohort.turns) cannot be kept for another";
        return Err(OptionError::new(OPTION_NAME, keep, rule));
    }
    Ok(())
}

fn fits(keep: Duration, lease: Duration) -> Result<(), OptionError> {
    if keep <= lease / LEASE_DIVISOR {
        return Ok(());
    }
    let rule = format!("must be at most a third of the lease, which is {lease:?}");
    Err(OptionError::new(OPTION_NAME, keep, rule))
}
