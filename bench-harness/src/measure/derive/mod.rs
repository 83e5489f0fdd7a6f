//! Figures computed from stored rounds: medians with their spread, ratios, rates, groups.
//!
//! All renderers take their numbers from here, so they agree.

mod caveats;
mod figures;
mod group;
mod measure;
mod spread;

pub use caveats::caveats;
pub use figures::{Overlaps, Quantile, errors, merged, operations, overlaps, rtt};
pub use group::{Group, Row, groups};
pub use measure::{Better, Measure, Unit};
pub use spread::{Spread, ratios};
