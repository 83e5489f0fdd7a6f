//! Finds what must not be at the same time, in O(n log n).
//!
//! Spans are half-open: one that ends in the nanosecond in which another begins does not overlap
//! it. A span of no length overlaps only what it is strictly inside of.

mod excess;
mod exclusion;
pub(super) mod latest;

pub use excess::{Excess, WeightedSpan, find_excess};
pub use exclusion::{Access, Conflict, Overlaps, Span, find_overlaps};
