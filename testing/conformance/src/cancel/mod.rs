//! Cancellation at every await point, and a layer that makes any backend misbehave.
//!
//! [`cut_after`] drops a future after a number of polls. [`FaultyBackend`] gives every backend call
//! await points, lost replies, duplicates, delays, and executions that outlive a dropped call, as
//! requests on a network do. [`Sweep`] combines the two: it cuts one operation at every point, and
//! after each cut waits until nothing is left: no lock, no waiter, no task.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
//! use locktopus_conformance::cancel::{Faults, Sweep, cut_after};
//!
//! let points = Sweep::new("acquire", Faults::yields(2)).run(async |world, polls| {
//!     cut_after(polls, world.locks.lock("job").acquire()).await.map(|guard| drop(guard))
//! }).await;
//! assert!(points > 3);
//! # }
//! ```

mod cut;
mod faults;
mod faulty;
mod sweep;

pub use cut::{Cut, cut_after};
pub use faults::Faults;
pub use faulty::FaultyBackend;
pub use sweep::{Sweep, World};
