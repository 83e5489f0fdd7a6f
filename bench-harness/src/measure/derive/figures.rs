//! Figures of one cell.

use std::collections::{BTreeMap, BTreeSet};

use hdrhistogram::Histogram;

use super::Spread;
use crate::measure::model::{Cell, HistogramError, Summary, op};

/// A quantile that is stored in summaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantile {
    /// Median.
    P50,
    /// 90th percentile.
    P90,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    P999,
    /// Largest value.
    Max,
}

impl Quantile {
    /// All quantiles, ascending.
    pub const ALL: [Self; 5] = [Self::P50, Self::P90, Self::P99, Self::P999, Self::Max];

    /// The name used in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
            Self::Max => "max",
        }
    }

    /// The value in `summary`.
    #[must_use]
    pub const fn of(self, summary: &Summary) -> u64 {
        match self {
            Self::P50 => summary.p50_ns,
            Self::P90 => summary.p90_ns,
            Self::P99 => summary.p99_ns,
            Self::P999 => summary.p999_ns,
            Self::Max => summary.max_ns,
        }
    }
}

/// Result of the overlap checks of all rounds of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlaps {
    /// Holds replayed in rounds that were checked.
    pub checked: u64,
    /// Overlaps found.
    pub found: u64,
    /// The longest of them.
    pub longest_ns: u64,
}

/// The operations in `cell`, most important first.
#[must_use]
pub fn operations(cell: &Cell) -> Vec<&str> {
    let names: BTreeSet<&str> = cell
        .rounds
        .iter()
        .flat_map(|round| round.operations.keys().map(String::as_str))
        .collect();
    let mut names: Vec<_> = names.into_iter().collect();
    names.sort_by_key(|name| op::rank(name));
    names
}

/// All rounds of one operation in one histogram; empty when it never ran.
///
/// # Errors
///
/// [`HistogramError`] when stored text is damaged.
pub fn merged(cell: &Cell, operation: &str) -> Result<Histogram<u64>, HistogramError> {
    let mut all = crate::measure::record::Recorder::new_histogram();
    for round in &cell.rounds {
        if let Some(stored) = round.operations.get(operation) {
            all.add(stored.decode()?)
                .map_err(|e| HistogramError::Encode(e.to_string()))?;
        }
    }
    Ok(all)
}

/// RTT, the median round trip of PING, over the rounds that measured it.
#[must_use]
pub fn rtt(cell: &Cell) -> Option<Spread> {
    Spread::of(
        cell.rounds
            .iter()
            .filter_map(|round| Some(round.ping.as_ref()?.summary.p50_ns as f64)),
    )
}

/// Failures by kind over all rounds.
#[must_use]
pub fn errors(cell: &Cell) -> BTreeMap<&str, u64> {
    let mut sums = BTreeMap::new();
    for (kind, count) in cell.rounds.iter().flat_map(|round| &round.errors) {
        *sums.entry(kind.as_str()).or_default() += count;
    }
    sums
}

/// Overlap checks of all rounds together; `None` when no round was checked.
#[must_use]
pub fn overlaps(cell: &Cell) -> Option<Overlaps> {
    cell.rounds
        .iter()
        .filter_map(|round| round.overlap_check)
        .fold(None, |sum, check| {
            let sum = sum.unwrap_or(Overlaps {
                checked: 0,
                found: 0,
                longest_ns: 0,
            });
            Some(Overlaps {
                checked: sum.checked + check.holds_checked,
                found: sum.found + check.overlaps,
                longest_ns: sum.longest_ns.max(check.longest_overlap_ns),
            })
        })
}
