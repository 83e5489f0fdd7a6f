//! A histogram per interval of the round.

use hdrhistogram::{Counter, Histogram};

use super::RecordError;
use crate::measure::model::{Point, TimeSeries};

/// Two digits are enough for a chart, and keep some hundred intervals per worker affordable.
const DIGITS: u8 = 2;

/// Records and grows when needed; `saturating_record` alone would cut at the present range.
pub(super) fn record_growing<C: Counter>(histogram: &mut Histogram<C>, value: u64) {
    if histogram.record(value).is_err() {
        histogram.saturating_record(value);
    }
}

/// Latencies of one operation, by the interval of its end.
///
/// Intervals count from the start of the round, not from the first record, so that recorders of
/// different workers and processes line up when they are merged.
#[derive(Clone, Debug)]
pub(super) struct Intervals {
    pub(super) operation: String,
    pub(super) interval_ns: u64,
    pub(super) histograms: Vec<Histogram<u32>>,
}

impl Intervals {
    pub(super) fn new(operation: &str, interval_ns: u64) -> Self {
        Self {
            operation: operation.to_owned(),
            interval_ns: interval_ns.max(1),
            histograms: Vec::new(),
        }
    }

    pub(super) fn record(&mut self, latency_ns: u64, ended_at_ns: u64) {
        let at = usize::try_from(ended_at_ns / self.interval_ns).unwrap_or(usize::MAX);
        self.reach(at);
        if let Some(histogram) = self.histograms.get_mut(at) {
            record_growing(histogram, latency_ns);
        }
    }

    /// Adds the intervals of another recorder of the same round.
    pub(super) fn merge(&mut self, other: &Self) -> Result<(), RecordError> {
        if (&other.operation, other.interval_ns) != (&self.operation, self.interval_ns) {
            return Err(RecordError::SeriesMismatch {
                ours: format!("{} every {} ns", self.operation, self.interval_ns),
                theirs: format!("{} every {} ns", other.operation, other.interval_ns),
            });
        }
        self.reach(other.histograms.len().saturating_sub(1));
        for (ours, theirs) in self.histograms.iter_mut().zip(&other.histograms) {
            ours.add(theirs)
                .map_err(|error| RecordError::Merge(error.to_string()))?;
        }
        Ok(())
    }

    /// The series of a round of `duration_ns`; later operations are left out.
    pub(super) fn into_series(self, duration_ns: u64) -> TimeSeries {
        let wanted = usize::try_from(duration_ns.div_ceil(self.interval_ns)).unwrap_or(0);
        let mut points: Vec<_> = self.histograms.iter().take(wanted).map(point).collect();
        points.resize(wanted.min(MAX_INTERVALS), Point::default());
        TimeSeries {
            operation: self.operation,
            interval_ns: self.interval_ns,
            points,
        }
    }

    fn reach(&mut self, at: usize) {
        while self.histograms.len() <= at && self.histograms.len() < MAX_INTERVALS {
            self.histograms.push(empty());
        }
    }
}

/// Keeps a clock that jumps from allocating without end. 60 s in intervals of 10 ms fit.
const MAX_INTERVALS: usize = 6_000;

pub(super) fn empty() -> Histogram<u32> {
    let mut histogram =
        Histogram::new(DIGITS).unwrap_or_else(|_| unreachable!("2 digits are valid"));
    histogram.auto(true);
    histogram
}

fn point(histogram: &Histogram<u32>) -> Point {
    if histogram.is_empty() {
        return Point::default();
    }
    Point {
        count: histogram.len(),
        p50_ns: histogram.value_at_quantile(0.5),
        p99_ns: histogram.value_at_quantile(0.99),
        max_ns: histogram.max(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_absolute_and_gaps_are_kept() {
        let mut early = Intervals::new("acquire", 100);
        early.record(7, 50);
        let mut late = Intervals::new("acquire", 100);
        late.record(9, 250);
        late.record(9, 299);
        early.merge(&late).unwrap();
        let counts: Vec<_> = early
            .into_series(401)
            .points
            .iter()
            .map(|p| p.count)
            .collect();
        assert_eq!(counts, [1, 0, 2, 0, 0]);
    }

    #[test]
    fn series_of_different_shape_do_not_merge() {
        let mut ours = Intervals::new("acquire", 100);
        assert!(ours.merge(&Intervals::new("acquire", 50)).is_err());
        assert!(ours.merge(&Intervals::new("release", 100)).is_err());
    }

    #[test]
    fn a_jumping_clock_allocates_nothing() {
        let mut intervals = Intervals::new("acquire", 1);
        intervals.record(1, u64::MAX);
        assert_eq!(intervals.histograms.len(), MAX_INTERVALS);
    }
}
