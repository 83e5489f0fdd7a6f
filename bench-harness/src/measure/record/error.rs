//! What can go wrong when records are put together.

use crate::measure::model::HistogramError;

/// Why recorders could not be combined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Time series of different operations or intervals.
    #[error("recorders of one round must share their series: {ours} against {theirs}")]
    SeriesMismatch {
        /// Series of the recorder merged into.
        ours: String,
        /// Series of the other one.
        theirs: String,
    },
    /// Histograms did not add up.
    #[error("histograms do not merge: {0}")]
    Merge(String),
    /// A histogram could not be stored.
    #[error(transparent)]
    Histogram(#[from] HistogramError),
}
