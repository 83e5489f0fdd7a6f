//! Connects the strategy of a job.

use std::sync::Arc;

use super::job::Job;
use crate::measure::plan::Strategy;
use crate::shared::locking::Subject;

pub(super) async fn connect(job: &Job) -> Result<Arc<dyn Subject>, String> {
    match job.strategy {
        Strategy::Locktopus => super::ours::connect(job).await,
        #[cfg(feature = "peers")]
        Strategy::Bare => crate::shared::locking::bare(&job.url).await,
        #[cfg(feature = "peers")]
        Strategy::R1 => crate::shared::locking::r1(&job.url).await,
        #[cfg(feature = "peers")]
        Strategy::Rslock => crate::shared::locking::rslock(&job.url).await,
        #[cfg(not(feature = "peers"))]
        Strategy::Bare | Strategy::R1 | Strategy::Rslock => {
            Err("peers need the feature \"peers\" of the harness".to_owned())
        }
        Strategy::Redisson => Err("Redisson's workers are another program".to_owned()),
    }
}
