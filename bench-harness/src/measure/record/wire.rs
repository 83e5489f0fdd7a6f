//! A recorder on its way from a worker process to the runner.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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
        Ok(WireRecorder {
            worker: self.worker,
            operations,
            grants: self.grants.clone(),
            holds: hold::encode(&self.holds),
            errors: self.errors.clone(),
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
        Ok(Self {
            operations,
            grants: wire.grants.clone(),
            holds: hold::decode(&wire.holds)?,
            errors: wire.errors.clone(),
            worker: wire.worker,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::measure::record::{Exclusion, RoundFacts};

    #[test]
    fn a_round_is_the_same_whether_or_not_it_crossed_a_process_border() {
        let mut recorder = Recorder::new(1);
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
        assert_eq!(direct.overlap_check, travelled.overlap_check);
        assert_eq!(
            direct.acquisitions_per_worker,
            travelled.acquisitions_per_worker
        );
        assert_eq!(direct.errors, travelled.errors);
    }
}
