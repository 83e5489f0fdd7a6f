//! Errors of merging records.

use crate::measure::model::HistogramError;

/// Why recorders could not be combined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Time series of different operations or intervals.
    #[error("recorders of one round must share their series: {ours} against {theirs}")]
    SeriesMismatch {
        /// The series of the recorder that was merged into.
        ours: String,
        /// The series of the other recorder.
        theirs: String,
    },
    /// Histograms could not be added.
    #[error("histograms do not merge: {0}")]
    Merge(String),
    /// A histogram could not be stored.
    #[error(transparent)]
    Histogram(#[from] HistogramError),
}
