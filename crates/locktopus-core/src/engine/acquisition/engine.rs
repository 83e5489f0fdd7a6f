//! The state shared by everything that one `Locktopus` creates.

use std::ops::Deref;
use std::sync::Arc;

use locktopus_contract::DynBackend;

use super::cohort::Cohorts;
use crate::engine::holding::services::Services;
use crate::engine::settings::Settings;

/// The state that acquisitions need: the [services](Services) of held leases, which it dereferences
/// to, and the cohorts of this process.
#[derive(Debug)]
pub(crate) struct Engine {
    services: Arc<Services>,
    pub(crate) cohorts: Arc<Cohorts>,
}

impl Engine {
    pub(crate) fn start(backend: DynBackend, settings: Settings) -> Arc<Self> {
        Arc::new(Self {
            services: Services::start(backend, settings),
            cohorts: Arc::default(),
        })
    }
}

impl Deref for Engine {
    type Target = Arc<Services>;

    fn deref(&self) -> &Arc<Services> {
        &self.services
    }
}
