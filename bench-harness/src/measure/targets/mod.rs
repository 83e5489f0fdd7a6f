//! Judges runs against the targets, and writes the page with the results.
//!
//! ```text
//! report.json ─► Summary ─┬─► judge ─► terminal, page
//! targets.toml ───────────┘
//! ```
//!
//! A [`Summary`](super::summary::Summary) keeps the part of a run that a reader can check by hand:
//! figures by round, without histograms. It is small enough to be committed, and the page is made
//! from the summary and the targets alone.

mod file;
mod judge;
mod page;
mod row;
mod select;

pub use file::{Bound, Check, Target, Targets};
pub use judge::{Judged, Line, Outcome, judge};
pub use page::{Pages, render};
pub use row::Row;
pub use select::Select;
