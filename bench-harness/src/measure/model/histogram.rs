//! A latency histogram inside JSON.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

/// Latencies as a whole histogram, plus a few figures that readers grep for.
///
/// The histogram is authoritative; the summary is for people and for `jq`.
/// [`crate::measure::model::read`] refuses a file in which they disagree about the count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredHistogram {
    /// `HdrHistogram` V2, deflated, in base64; the values are nanoseconds.
    pub v2_deflate_base64: String,
    /// Figures read off the histogram.
    pub summary: Summary,
}

/// Figures read off a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Recorded values.
    pub count: u64,
    /// Smallest value.
    pub min_ns: u64,
    /// Arithmetic mean, rounded.
    pub mean_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// Largest value.
    pub max_ns: u64,
}

/// Why stored text is not a histogram.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HistogramError {
    /// The text is not base64.
    #[error("histogram text is not base64 ({0}); the file was edited or cut short")]
    Base64(#[from] base64::DecodeError),
    /// The bytes are not a deflated V2 histogram.
    #[error(
        "histogram bytes are not HdrHistogram V2 deflate ({0}); the file was edited or cut short"
    )]
    Decode(String),
    /// The histogram cannot be written or added to another one.
    #[error("histogram cannot be encoded or merged: {0}")]
    Encode(String),
    /// The summary was not made from this histogram.
    #[error(
        "summary says {summary} values, histogram holds {histogram}; measure again or delete the cell"
    )]
    SummaryMismatch {
        /// Count according to the summary.
        summary: u64,
        /// Count according to the histogram.
        histogram: u64,
    },
}

impl Summary {
    /// Reads the figures off `histogram`.
    #[must_use]
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let at = |quantile| histogram.value_at_quantile(quantile);
        Self {
            count: histogram.len(),
            min_ns: histogram.min(),
            mean_ns: histogram.mean().round() as u64,
            p50_ns: at(0.5),
            p90_ns: at(0.9),
            p99_ns: at(0.99),
            p999_ns: at(0.999),
            max_ns: histogram.max(),
        }
    }
}

impl StoredHistogram {
    /// Stores `histogram` without loss.
    ///
    /// # Errors
    ///
    /// [`HistogramError::Encode`] when the encoder refuses, which needs a histogram larger than
    /// 4 GiB.
    pub fn from_histogram(histogram: &Histogram<u64>) -> Result<Self, HistogramError> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(histogram, &mut bytes)
            .map_err(|error| HistogramError::Encode(format!("{error:?}")))?;
        Ok(Self {
            v2_deflate_base64: STANDARD.encode(bytes),
            summary: Summary::of(histogram),
        })
    }

    /// The histogram, bucket for bucket as it was recorded.
    ///
    /// # Errors
    ///
    /// Any [`HistogramError`] except `Encode` when the text was damaged.
    pub fn decode(&self) -> Result<Histogram<u64>, HistogramError> {
        let bytes = STANDARD.decode(&self.v2_deflate_base64)?;
        let histogram: Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|error| HistogramError::Decode(format!("{error:?}")))?;
        if histogram.len() != self.summary.count {
            return Err(HistogramError::SummaryMismatch {
                summary: self.summary.count,
                histogram: histogram.len(),
            });
        }
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_the_round_trip_bucket_for_bucket() {
        let mut histogram = Histogram::new(3).unwrap();
        for value in [1_u64, 57_000, 57_001, 1_234_567, 59_000_000_000] {
            histogram.record(value).unwrap();
        }
        let stored = StoredHistogram::from_histogram(&histogram).unwrap();
        let back = stored.decode().unwrap();
        assert_eq!(back, histogram);
        assert_eq!(Summary::of(&back), stored.summary);
    }

    #[test]
    fn damage_is_named() {
        let mut stored = StoredHistogram::from_histogram(&Histogram::new(3).unwrap()).unwrap();
        stored.summary.count = 7;
        assert!(matches!(
            stored.decode(),
            Err(HistogramError::SummaryMismatch { .. })
        ));
        stored.v2_deflate_base64 = "AAAA".to_owned();
        assert!(matches!(stored.decode(), Err(HistogramError::Decode(_))));
        stored.v2_deflate_base64 = "?".to_owned();
        assert!(matches!(stored.decode(), Err(HistogramError::Base64(_))));
    }
}
