//! From the name of a strategy to one that works.

use std::sync::Arc;

use super::job::Job;
use super::subject::Subject;
use crate::plan::Strategy;

pub(super) async fn connect(job: &Job) -> Result<Arc<dyn Subject>, String> {
    match job.strategy {
        Strategy::Locktopus => super::ours::connect(job).await,
        #[cfg(feature = "peers")]
        Strategy::R1 => super::peers::r1(&job.url).await,
        #[cfg(feature = "peers")]
        Strategy::Rslock => super::peers::rslock(&job.url).await,
        #[cfg(not(feature = "peers"))]
        Strategy::R1 | Strategy::Rslock => {
            Err("peers need the feature \"peers\" of the harness".to_owned())
        }
        Strategy::Redisson => Err("Redisson's workers are another program".to_owned()),
    }
}
