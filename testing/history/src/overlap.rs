//! Finds spans that must not coexist, in O(n log n).
//!
//! Spans are half-open: a span does not overlap one that starts in the nanosecond of its end. A
//! span without a length overlaps only those that strictly contain it.

mod excess;
mod exclusion;
pub(super) mod latest;

pub use excess::{Excess, WeightedSpan, find_excess};
pub use exclusion::{Access, Conflict, Overlaps, Span, find_overlaps};
