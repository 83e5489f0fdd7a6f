//! Judges runs by what is promised, and writes the page that says so.
//!
//! ```text
//! report.json ─► Summary ─┬─► judge ─► terminal, page
//! targets.toml ───────────┘
//! ```
//!
//! A [`Summary`] keeps of a run what a reader can check by hand: figures by round, without histograms. It is
//! small enough to be committed, and the page is made from it and from the targets alone.

mod file;
mod judge;
mod opening;
mod page;
mod select;
mod summary;
mod whole;

pub use file::{Bound, Check, Target, TargetError, Targets};
pub use judge::{Judged, Line, Outcome, judge};
pub use opening::picture;
pub use page::{Row, UNEXPLAINED, render};
pub use select::Select;
pub use summary::{Summary, SummaryCell, SummaryError};
pub use whole::{Whole, unmeasured};
