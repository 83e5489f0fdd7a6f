//! The pacing of the workers.

use serde::{Deserialize, Serialize};

/// The pacing of the workers, which decides what their latencies mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Pacing {
    /// Each worker asks again when it is done. Waits are understated, because no requests arrive
    /// while all workers wait.
    ClosedLoop,
    /// Requests arrive on a schedule and are timed from their due time, so a stall counts for every
    /// request it delayed: coordinated omission is corrected.
    OpenLoop {
        /// Arrivals per second over all workers.
        arrivals_per_second: u64,
    },
}

impl Pacing {
    /// Whether coordinated omission is corrected.
    #[must_use]
    pub const fn is_corrected(self) -> bool {
        matches!(self, Self::OpenLoop { .. })
    }

    /// The pacing in words.
    #[must_use]
    pub fn describe(self) -> String {
        match self {
            Self::ClosedLoop => "closed loop".to_owned(),
            Self::OpenLoop {
                arrivals_per_second,
            } => {
                format!("open loop, {arrivals_per_second} arrivals/s")
            }
        }
    }
}
