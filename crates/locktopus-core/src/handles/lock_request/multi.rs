//! Requests that are part of a multi-lock.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use locktopus_contract::OptionError;

use super::{LockRequest, RequestOptions};
use crate::engine::error::LockError;
use crate::engine::holding::services::Services;
use crate::handles::any_guard::AnyGuard;
use crate::handles::guard::LockGuard;

impl<G: AnyGuard> LockRequest<G> {
    /// The same request for a plain guard. Refuses an owner: a lock that the owner enters again is
    /// not acquired anew, so it could not be put in order.
    pub(crate) fn for_many(self) -> Result<LockRequest, LockError> {
        if self.options.owner.is_some() {
            let rule =
                "a lock that is taken together with others cannot be entered again by an owner";
            return Err(OptionError::new("owner", &self.name, rule).into());
        }
        if self.options.lease_cache.is_some_and(|keep| !keep.is_zero()) {
            let rule = "a lock that is taken together with others is not kept after its release";
            return Err(OptionError::new("lease_cache", self.options.lease_cache, rule).into());
        }
        Ok(LockRequest {
            services: self.services,
            name: self.name,
            kind: self.kind,
            permits: self.permits,
            options: RequestOptions {
                lease_cache: Some(Duration::ZERO),
                wait: None,
                ..self.options
            },
            guard: PhantomData::<fn() -> LockGuard>,
        })
    }
}

impl LockRequest {
    pub(crate) fn services(&self) -> &Arc<Services> {
        &self.services
    }

    pub(crate) fn hold_at_least_for(&self) -> Duration {
        self.options.hold_at_least
    }
}
