//! Judges runs by what is promised, and writes the page that says so.
//!
//! ```text
//! report.json ─► Summary ─┬─► judge ─► terminal, page
//! targets.toml ───────────┘
//! ```
//!
//! A [`Summary`](super::summary::Summary) keeps of a run what a reader can check by hand: figures
//! by round, without histograms. It is small enough to be committed, and the page is made from it
//! and from the targets alone.

mod file;
mod judge;
mod page;
mod row;
mod select;
mod whole;

pub use file::{Bound, Check, Target, TargetError, Targets};
pub use judge::{Judged, Line, Outcome, judge};
pub use page::render;
pub use row::Row;
pub use select::Select;
pub use whole::{Whole, unmeasured};
