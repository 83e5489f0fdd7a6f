//! A recorder on its way from a worker process to the runner.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

use super::intervals::Intervals;
use super::{Recorder, WireError, hold};
use crate::measure::model::{HistogramError, StoredHistogram};

/// A [`Recorder`] as one line of JSON. Internal to one build of the harness: not versioned.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WireRecorder {
    worker: u32,
    operations: BTreeMap<String, StoredHistogram>,
    grants: BTreeMap<u32, u64>,
    holds: String,
    errors: BTreeMap<String, u64>,
    series_of: String,
    interval_ns: u64,
    /// Empty text means an interval without operations.
    intervals: Vec<String>,
}

impl Recorder {
    /// Packs the recorder for another process.
    ///
    /// # Errors
    ///
    /// [`HistogramError::Encode`] when a histogram cannot be encoded.
    pub fn to_wire(&self) -> Result<WireRecorder, HistogramError> {
        let mut operations = BTreeMap::new();
        for (name, histogram) in &self.operations {
            operations.insert(name.clone(), StoredHistogram::from_histogram(histogram)?);
        }
        let intervals = self
            .intervals
            .histograms
            .iter()
            .map(pack)
            .collect::<Result<_, _>>()?;
        Ok(WireRecorder {
            worker: self.worker,
            operations,
            grants: self.grants.clone(),
            holds: hold::encode(&self.holds),
            errors: self.errors.clone(),
            series_of: self.intervals.operation.clone(),
            interval_ns: self.intervals.interval_ns,
            intervals,
        })
    }

    /// Unpacks a recorder from another process.
    ///
    /// # Errors
    ///
    /// [`WireError`] when the text was damaged on the way.
    pub fn from_wire(wire: &WireRecorder) -> Result<Self, WireError> {
        let mut operations = Vec::new();
        for (name, stored) in &wire.operations {
            let mut histogram = stored.decode()?;
            histogram.auto(true);
            operations.push((name.clone(), histogram));
        }
        let mut intervals = Intervals::new(&wire.series_of, wire.interval_ns);
        for text in &wire.intervals {
            intervals.histograms.push(unpack(text)?);
        }
        Ok(Self {
            operations,
            grants: wire.grants.clone(),
            holds: hold::decode(&wire.holds)?,
            errors: wire.errors.clone(),
            intervals,
            worker: wire.worker,
        })
    }
}

fn pack(histogram: &Histogram<u32>) -> Result<String, HistogramError> {
    if histogram.is_empty() {
        return Ok(String::new());
    }
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(histogram, &mut bytes)
        .map_err(|error| HistogramError::Encode(format!("{error:?}")))?;
    Ok(STANDARD.encode(bytes))
}

fn unpack(text: &str) -> Result<Histogram<u32>, WireError> {
    if text.is_empty() {
        return Ok(super::intervals::empty());
    }
    let bytes = STANDARD.decode(text)?;
    let mut histogram: Histogram<u32> = Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|error| HistogramError::Decode(format!("{error:?}")))?;
    histogram.auto(true);
    Ok(histogram)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::measure::record::{Exclusion, RoundFacts};

    #[test]
    fn a_round_is_the_same_whether_or_not_it_crossed_a_process_border() {
        let mut recorder = Recorder::new(1, "acquire", Duration::from_micros(10));
        let acquire = recorder.operation("acquire");
        for i in 0..1_000_u64 {
            recorder.record(acquire, i * 700, i * 700 + 300 + i);
            recorder.held(0, i * 700, i * 700 + 300);
        }
        recorder.error("lost");
        let text = serde_json::to_string(&recorder.to_wire().unwrap()).unwrap();
        let wire: WireRecorder = serde_json::from_str(&text).unwrap();
        let back = Recorder::from_wire(&wire).unwrap();
        let facts = RoundFacts {
            index: 0,
            position: 0,
            duration: Duration::from_millis(1),
            workers: 2,
            ping: None,
            server_cost: None,
            client_cost: None,
            machine: None,
            exclusion: Some(Exclusion::Permits(1)),
        };
        let direct = recorder.into_round(facts.clone()).unwrap();
        let travelled = back.into_round(facts).unwrap();
        // Histograms may differ in capacity, hence in bytes, but not in content.
        assert_eq!(
            direct.operations["acquire"].summary,
            travelled.operations["acquire"].summary
        );
        assert_eq!(direct.time_series, travelled.time_series);
        assert_eq!(direct.overlap_check, travelled.overlap_check);
        assert_eq!(
            direct.acquisitions_per_worker,
            travelled.acquisitions_per_worker
        );
        assert_eq!(direct.errors, travelled.errors);
    }
}
