//! A round over time.

use serde::{Deserialize, Serialize};

/// One operation in intervals of equal length, counted from the start of the round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TimeSeries {
    /// The operation, as named in the round.
    pub operation: String,
    /// Length of an interval. Point `i` covers `i * interval_ns` to `(i + 1) * interval_ns`.
    pub interval_ns: u64,
    /// All intervals, without gaps.
    pub points: Vec<Point>,
}

/// One interval. All latencies are 0 when nothing ended within it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Operations that ended in the interval.
    pub count: u64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Largest value.
    pub max_ns: u64,
}
