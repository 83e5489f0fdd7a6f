//! The per-worker recorder.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::{Exclusion, Hold};
use crate::measure::model::{ClientCost, HistogramError, Round, ServerCost, StoredHistogram};
use crate::shared::stall::MachineStall;

const DIGITS: u8 = 3;
/// The initial range of histograms; they grow when needed.
const EXPECTED_MAX_NS: u64 = 1_000_000;
/// Longer latencies are recorded as this, because a wait of a minute is a hang in any case.
const CEILING_NS: u64 = 60_000_000_000;

/// Handle of an operation within a [`Recorder`]; cheaper than its name on the hot path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpId(usize);

/// Facts about a round besides the workers' records.
#[derive(Clone, Debug)]
pub struct RoundFacts {
    /// Number of the round, from 0.
    pub index: u32,
    /// Position of the cell within the round, from 0.
    pub position: u32,
    /// Length of the measured part.
    pub duration: Duration,
    /// Number of workers, so that a worker that never got the lock counts as 0.
    pub workers: u32,
    /// Round trips of PING in this round; recorded into a [`Recorder::new_histogram`].
    pub ping: Option<Histogram<u64>>,
    /// The servers' counters.
    pub server_cost: Option<ServerCost>,
    /// The cost for the workers' processes.
    pub client_cost: Option<ClientCost>,
    /// Stalls of the machine meanwhile.
    pub machine: Option<MachineStall>,
    /// The rule for holders of a lock at the same time, or `None` to skip the overlap check.
    pub exclusion: Option<Exclusion>,
}

/// Latencies, grants, holds and errors of one worker, or of many after merging.
#[derive(Clone, Debug)]
pub struct Recorder {
    pub(super) operations: Vec<(String, Histogram<u64>)>,
    pub(super) grants: BTreeMap<u32, u64>,
    pub(super) holds: Vec<Hold>,
    pub(super) errors: BTreeMap<String, u64>,
    pub(super) worker: u32,
}

impl Recorder {
    /// A recorder of `worker`.
    #[must_use]
    pub fn new(worker: u32) -> Self {
        Self {
            operations: Vec::new(),
            grants: BTreeMap::new(),
            holds: Vec::new(),
            errors: BTreeMap::new(),
            worker,
        }
    }

    /// A histogram of the kind used here, for PING round trips and the like.
    #[must_use]
    pub fn new_histogram() -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, EXPECTED_MAX_NS, DIGITS)
            .unwrap_or_else(|_| unreachable!("constant bounds are valid"));
        histogram.auto(true);
        histogram
    }

    /// The handle of operation `name`, which is registered on first use.
    pub fn operation(&mut self, name: &str) -> OpId {
        let at = self
            .operations
            .iter()
            .position(|(known, _)| known == name)
            .unwrap_or_else(|| {
                self.operations
                    .push((name.to_owned(), Self::new_histogram()));
                self.operations.len() - 1
            });
        OpId(at)
    }

    /// The histograms so far, by name.
    #[cfg(test)]
    pub(crate) fn operations(&self) -> impl Iterator<Item = (&str, &Histogram<u64>)> {
        self.operations
            .iter()
            .map(|(name, histogram)| (name.as_str(), histogram))
    }

    /// Records one operation that took from `start_ns` to `end_ns`.
    ///
    /// In an open loop `start_ns` is when the operation was *due*, which corrects for coordinated
    /// omission. Latencies below 1 ns count as 1 ns, above 60 s as 60 s.
    ///
    /// # Panics
    ///
    /// When `op` comes from another recorder.
    pub fn record(&mut self, op: OpId, start_ns: u64, end_ns: u64) {
        let latency_ns = end_ns.saturating_sub(start_ns).clamp(1, CEILING_NS);
        let histogram = &mut self.operations[op.0].1;
        // `saturating_record` alone would cut at the present range.
        if histogram.record(latency_ns).is_err() {
            histogram.saturating_record(latency_ns);
        }
    }

    /// Counts one grant to this worker.
    pub fn granted(&mut self) {
        *self.grants.entry(self.worker).or_default() += 1;
    }

    /// Counts one grant and keeps the hold for the overlap check. Both times must lie within the
    /// hold; see [`Hold`].
    pub fn held(&mut self, lock: u32, start_ns: u64, end_ns: u64) {
        self.granted();
        self.holds.push(Hold {
            lock,
            start_ns,
            end_ns,
            worker: self.worker,
        });
    }

    /// Counts one failure of `kind`.
    pub fn error(&mut self, kind: &str) {
        match self.errors.get_mut(kind) {
            Some(count) => *count += 1,
            None => drop(self.errors.insert(kind.to_owned(), 1)),
        }
    }

    /// Adds the records of another recorder of the same round.
    ///
    /// # Errors
    ///
    /// [`HistogramError::Encode`] when histograms do not add up.
    pub fn merge(&mut self, other: Self) -> Result<(), HistogramError> {
        for (name, theirs) in other.operations {
            let OpId(at) = self.operation(&name);
            let ours = &mut self.operations[at].1;
            ours.add(theirs)
                .map_err(|error| HistogramError::Encode(error.to_string()))?;
        }
        for (worker, count) in other.grants {
            *self.grants.entry(worker).or_default() += count;
        }
        for (kind, count) in other.errors {
            *self.errors.entry(kind).or_default() += count;
        }
        self.holds.extend(other.holds);
        Ok(())
    }

    /// The round of these records.
    ///
    /// # Errors
    ///
    /// [`HistogramError::Encode`] when a histogram cannot be encoded.
    pub fn into_round(mut self, facts: RoundFacts) -> Result<Round, HistogramError> {
        let duration_ns = nanos(facts.duration);
        let mut operations = BTreeMap::new();
        for (name, histogram) in &self.operations {
            if !histogram.is_empty() {
                operations.insert(name.clone(), StoredHistogram::from_histogram(histogram)?);
            }
        }
        let workers = self
            .grants
            .keys()
            .last()
            .map_or(0, |last| last + 1)
            .max(facts.workers);
        let per_worker = (0..workers)
            .map(|w| self.grants.get(&w).copied().unwrap_or(0))
            .collect();
        let ping = facts
            .ping
            .as_ref()
            .map(StoredHistogram::from_histogram)
            .transpose()?;
        let overlap_check = facts
            .exclusion
            .map(|exclusion| exclusion.check(&mut self.holds));
        Ok(Round {
            index: facts.index,
            position: facts.position,
            duration_ns,
            ping,
            operations,
            acquisitions: self.grants.values().sum(),
            acquisitions_per_worker: per_worker,
            errors: self.errors,
            server_cost: facts.server_cost,
            client_cost: facts.client_cost,
            machine: facts.machine,
            overlap_check,
        })
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::model::op;

    fn facts() -> RoundFacts {
        RoundFacts {
            index: 0,
            position: 0,
            duration: Duration::from_millis(1),
            workers: 3,
            ping: None,
            server_cost: None,
            client_cost: None,
            machine: None,
            exclusion: Some(Exclusion::Permits(1)),
        }
    }

    #[test]
    fn merged_workers_become_one_round() {
        let (mut a, mut b) = (Recorder::new(0), Recorder::new(2));
        let acquire = a.operation(op::ACQUIRE);
        a.record(acquire, 0, 10_000);
        a.held(0, 10_000, 20_000);
        a.error("timeout");
        let release = b.operation(op::RELEASE);
        let acquire = b.operation(op::ACQUIRE);
        b.record(acquire, 0, 150_000);
        b.record(release, 150_000, 150_500);
        b.held(0, 15_000, 30_000);
        b.error("timeout");
        a.merge(b).unwrap();
        let round = a.into_round(facts()).unwrap();
        assert_eq!(round.acquisitions_per_worker, [1, 0, 1]);
        assert_eq!(round.acquisitions, 2);
        assert_eq!(round.errors["timeout"], 2);
        assert_eq!(round.operations[op::ACQUIRE].summary.count, 2);
        assert_eq!(round.operations[op::RELEASE].summary.count, 1);
        assert_eq!(round.overlap_check.unwrap().longest_overlap_ns, 5_000);
    }

    #[test]
    fn latencies_stay_within_a_nanosecond_and_a_minute() {
        let mut recorder = Recorder::new(0);
        let acquire = recorder.operation(op::ACQUIRE);
        recorder.record(acquire, 10, 10);
        recorder.record(acquire, 0, u64::MAX);
        let round = recorder.into_round(facts()).unwrap();
        let summary = round.operations[op::ACQUIRE].summary;
        assert_eq!(summary.min_ns, 1);
        assert!(summary.max_ns.abs_diff(CEILING_NS) < CEILING_NS / 1_000);
    }

    #[test]
    fn operations_that_never_happened_are_left_out() {
        let mut recorder = Recorder::new(0);
        recorder.operation(op::RELEASE);
        let round = recorder.into_round(facts()).unwrap();
        assert!(round.operations.is_empty());
    }
}
