//! The name a request is for, either as the caller gave it or as it is stored.

use std::fmt;

use locktopus_contract::{LockKind, LockName, LockTarget, RawName};

use crate::engine::error::LockError;
use crate::engine::holding::services::Services;

/// The name of a lock, not yet checked.
#[derive(Clone)]
pub(crate) enum RequestName {
    /// As the caller gave it: still to be encoded and prefixed with the namespace.
    Given(RawName),
    /// As the backend stores it, including the namespace.
    Stored(LockName),
}

impl RequestName {
    /// Checks the name and pairs it with a kind.
    pub(crate) fn target(
        &self,
        services: &Services,
        kind: &LockKind,
    ) -> Result<LockTarget, LockError> {
        let settings = &services.settings;
        let name = match self {
            Self::Given(name) => settings.names.encode_given(&settings.namespace, name)?,
            Self::Stored(name) => name.clone(),
        };
        let target = LockTarget::new(name, kind.clone());
        services.backend.check(&target)?;
        Ok(target)
    }
}

impl fmt::Debug for RequestName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(name) => name.fmt(f),
            Self::Stored(name) => name.fmt(f),
        }
    }
}
