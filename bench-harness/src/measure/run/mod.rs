//! The parent's side: places, rounds, children, and the servers' own counters.

mod child;
mod cost;
mod jobs;
mod pinned_cores;
mod place;
mod rounds;

pub use pinned_cores::PinnedCores;
pub use place::{Place, PlaceError, ProviderChoice, kind};
pub use rounds::{RunError, Runner};
