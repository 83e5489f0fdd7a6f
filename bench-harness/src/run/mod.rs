//! The parent's side: places, rounds, children, and what the servers say they did.

mod child;
mod cost;
mod jobs;
mod place;
mod quiet;
mod rounds;

pub use place::{Place, PlaceError, ProviderChoice, kind};
pub use quiet::Quiet;
pub use rounds::{RunError, Runner};
