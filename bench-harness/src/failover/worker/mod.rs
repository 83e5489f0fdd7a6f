//! The worker process: takes locks, uses them, and records what it did and believed.

mod broken;
mod connect;
mod job;
mod ours;
#[cfg(feature = "peers")]
mod peers;
#[cfg(all(feature = "peers", unix))]
mod redisson;
mod resource_client;
mod serve;
mod subject;
mod worker_loop;

use std::time::Duration;

use locktopus_history::Clock;

pub(super) use job::{Answer, Assignment, Job};
pub(super) use serve::STOP;
pub use serve::serve;

/// Sleeps until a reading of the clock.
async fn sleep_until(clock: Clock, reading: u64) {
    let left = reading.saturating_sub(clock.now_ns());
    tokio::time::sleep(Duration::from_nanos(left)).await;
}
