//! Connects a worker process to its subject.

use std::sync::Arc;

use locktopus_history::Clock;

use super::job::Job;
use super::subject::Subject;
use super::{broken, ours};
use crate::failover::plan::Subject as Whose;

/// Connects.
pub(super) async fn connect(job: &Job, clock: Clock) -> Result<Arc<dyn Subject>, String> {
    match job.subject {
        Whose::Locktopus => ours::connect(job, clock).await,
        Whose::BrokenRejoin => ours::hasty_quorum(job, clock).await,
        #[cfg(feature = "peers")]
        Whose::R1 | Whose::Rslock => super::peers::connect(job, clock).await,
        #[cfg(all(feature = "peers", unix))]
        Whose::Redisson => super::redisson::connect(job, clock).await,
        #[cfg(all(feature = "peers", not(unix)))]
        Whose::Redisson => Err("Redisson needs processes as Unix has them".to_owned()),
        #[cfg(not(feature = "peers"))]
        Whose::R1 | Whose::Rslock | Whose::Redisson => {
            Err("peers need the feature \"peers\" of the harness".to_owned())
        }
        // All others are broken on purpose.
        _ => broken::connect(job, clock).await,
    }
}
