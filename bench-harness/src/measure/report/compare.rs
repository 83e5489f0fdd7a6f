//! Two runs side by side: what changed, and whether the change exceeds the noise.

use std::collections::BTreeSet;

use crate::measure::completeness;
use crate::measure::derive::{Better, Measure, Spread, measures, operations, overlaps};
use crate::measure::model::{Cell, Report, op};

/// Operations that may happen in only one of two runs although nothing is wrong.
const BY_CHANCE: [&str; 2] = [op::OWN_LEASE, op::OUTAGE];

/// How one figure changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every round of the second run beats every round of the first.
    Better,
    /// Every round of the second run loses to every round of the first.
    Worse,
    /// The rounds of the two runs interleave.
    WithinNoise,
    /// One of the runs has too few rounds for a range.
    NoiseUnknown,
}

/// One figure of one cell in both runs.
#[derive(Clone, Debug)]
pub struct Delta {
    /// Which figure.
    pub measure: Measure,
    /// The first run.
    pub before: Spread,
    /// The second run.
    pub after: Spread,
    /// Change of the medians in percent of the first; positive is more, not better.
    pub percent: f64,
    /// The verdict on the change.
    pub verdict: Verdict,
}

/// One cell in both runs.
#[derive(Clone, Debug)]
pub struct Pair<'a> {
    /// The cell of the first run.
    pub before: &'a Cell,
    /// The cell of the second run.
    pub after: &'a Cell,
    /// Every figure both have.
    pub deltas: Vec<Delta>,
}

/// Both runs.
#[derive(Clone, Debug)]
pub struct Comparison<'a> {
    /// The first run.
    pub before: &'a Report,
    /// The second run.
    pub after: &'a Report,
    /// Differences besides the code: unless this is empty, absolute figures mean little.
    pub differences: Vec<String>,
    /// Cells found in both.
    pub pairs: Vec<Pair<'a>>,
    /// Cells only the first run has.
    pub only_before: Vec<&'a Cell>,
    /// Cells only the second run has.
    pub only_after: Vec<&'a Cell>,
}

/// Compares two runs. Cells match if they measured the same under the same load. Server and
/// provider may differ; those are reported as differences.
#[must_use]
pub fn compare<'a>(before: &'a Report, after: &'a Report) -> Comparison<'a> {
    let mut pairs = Vec::new();
    let mut only_before = Vec::new();
    let mut matched = BTreeSet::new();
    for cell in &before.cells {
        let found = after
            .cells
            .iter()
            .enumerate()
            .find(|(at, other)| !matched.contains(at) && comparable(cell, other));
        match found {
            Some((at, other)) => {
                matched.insert(at);
                pairs.push(Pair {
                    before: cell,
                    after: other,
                    deltas: deltas(cell, other),
                });
            }
            None => only_before.push(cell),
        }
    }
    let cells: Vec<_> = pairs.iter().map(|pair| (pair.before, pair.after)).collect();
    let unmatched = |(at, cell): (usize, &'a Cell)| (!matched.contains(&at)).then_some(cell);
    Comparison {
        before,
        after,
        differences: super::differences::between(before, after, &cells),
        only_before,
        only_after: after
            .cells
            .iter()
            .enumerate()
            .filter_map(unmatched)
            .collect(),
        pairs,
    }
}

impl Comparison<'_> {
    /// Why the second run fails a gate of `percent`; empty when it passes.
    ///
    /// A figure fails when it is worse beyond noise *and* by more than `percent`. The gate also
    /// fails for new overlaps, for operations or overlap checks that are gone, for cells in one run
    /// only, and for a comparison of nothing: a gate that passes because it found nothing to
    /// compare is useless. [`Comparison::unfit`] tells whether the runs can be compared at all.
    #[must_use]
    pub fn failures(&self, percent: f64) -> Vec<String> {
        let mut failures = Vec::new();
        for pair in &self.pairs {
            let name = pair.after.subject.describe();
            for delta in pair
                .deltas
                .iter()
                .filter(|delta| delta.is_worse_by(percent))
            {
                let (what, by) = (delta.measure.name(), delta.percent);
                failures.push(format!("{name}: {what} {by:+.1}%"));
            }
            let lost = pair.lost().into_iter();
            failures.extend(lost.map(|what| format!("{name}: {what} is not in the second run")));
            if overlaps(pair.before).is_some() && overlaps(pair.after).is_none() {
                failures.push(format!("{name}: overlapping holds were not checked"));
            }
            let found = |cell| overlaps(cell).map_or(0, |check| check.found);
            if found(pair.after) > found(pair.before) {
                failures.push(format!("{name}: {} overlapping holds", found(pair.after)));
            }
        }
        let one_sided = [(&self.only_before, "second"), (&self.only_after, "first")];
        for (cells, other) in one_sided {
            let names = cells.iter().map(|cell| cell.subject.describe());
            failures.extend(names.map(|name| format!("{name}: missing from the {other} run")));
        }
        if self.pairs.is_empty() {
            failures.push("no cell is in both runs: nothing was compared".to_owned());
        }
        failures
    }

    /// Why the runs cannot be compared, a sentence each: what [`completeness`] says is missing or
    /// failed in one of them. Missing rounds, or rounds without grants, would make any comparison
    /// meaningless.
    #[must_use]
    pub fn unfit(&self) -> Vec<String> {
        let sides = [("first", self.before), ("second", self.after)];
        let of = |(which, report)| {
            let missing = completeness::missing(report).into_iter();
            missing.map(move |problem| format!("the {which} run is incomplete: {problem}"))
        };
        sides.into_iter().flat_map(of).collect()
    }
}

impl Pair<'_> {
    /// Operations without latencies in the second run.
    fn lost(&self) -> Vec<&str> {
        let has = |name: &str| operations(self.after).contains(&name);
        let lost = operations(self.before).into_iter();
        lost.filter(|name| !BY_CHANCE.contains(name) && !has(name))
            .collect()
    }
}

impl Delta {
    /// Whether the figure got worse beyond noise and by more than `percent`. Without a noise figure
    /// the threshold alone decides.
    #[must_use]
    pub fn is_worse_by(&self, percent: f64) -> bool {
        let worse = match self.measure.better() {
            Better::Lower => self.percent > percent,
            Better::Higher => self.percent < -percent,
        };
        worse && matches!(self.verdict, Verdict::Worse | Verdict::NoiseUnknown)
    }
}

fn comparable(a: &Cell, b: &Cell) -> bool {
    let key = |cell: &Cell| {
        let mut subject = cell.subject.clone();
        subject.server = None;
        subject.provider = crate::measure::model::Provider::External;
        subject
    };
    key(a) == key(b)
}

fn deltas(before: &Cell, after: &Cell) -> Vec<Delta> {
    let one = |measure: Measure| {
        let (before, after) = (measure.of(before)?, measure.of(after)?);
        let percent = if before.median == after.median {
            0.0
        } else {
            100.0 * (after.median - before.median) / before.median
        };
        let verdict = verdict(&measure, &before, &after);
        Some(Delta {
            measure,
            before,
            after,
            percent,
            verdict,
        })
    };
    measures(before).into_iter().filter_map(one).collect()
}

fn verdict(measure: &Measure, before: &Spread, after: &Spread) -> Verdict {
    if before.overlaps(after) {
        Verdict::WithinNoise
    } else if !(before.is_interval() && after.is_interval()) {
        Verdict::NoiseUnknown
    } else if (after.median > before.median) == (measure.better() == Better::Higher) {
        Verdict::Better
    } else {
        Verdict::Worse
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::synthetic;

    #[test]
    fn a_run_equals_itself() {
        let report = synthetic::shared();
        let comparison = compare(report, report);
        assert_eq!(comparison.pairs.len(), report.cells.len());
        assert!(
            comparison.differences.is_empty(),
            "{:?}",
            comparison.differences
        );
        assert!(comparison.failures(0.0).is_empty());
        let deltas = comparison.pairs.iter().flat_map(|pair| &pair.deltas);
        assert!(
            deltas
                .map(|delta| delta.verdict)
                .all(|v| v == Verdict::WithinNoise)
        );
    }

    #[test]
    fn a_regression_is_found_and_attributed() {
        let (before, after) = (synthetic::shared(), synthetic::regressed());
        let comparison = compare(before, &after);
        assert_eq!(comparison.only_before.len(), 1);
        let failures = comparison.failures(10.0);
        assert!(
            failures
                .iter()
                .any(|f| f.contains("hot-lock locktopus") && f.contains("/s -2"))
        );
        assert!(!failures.iter().any(|f| f.contains("R1")), "{failures:#?}");
        assert!(
            failures
                .iter()
                .any(|f| f.contains("missing from the second run"))
        );
        assert!(
            comparison
                .failures(50.0)
                .iter()
                .all(|f| f.contains("missing"))
        );
    }

    #[test]
    fn nothing_in_common_is_a_failure_of_the_gate() {
        let (before, after) = (synthetic::shared(), synthetic::empty());
        assert!(!compare(&after, before).failures(99.0).is_empty());
    }

    /// Cells in the second run alone were not compared either, and stay unguarded until both sides
    /// have them.
    #[test]
    fn what_one_run_lacks_is_a_failure_of_the_gate() {
        let before = synthetic::shared();
        let mut after = before.clone();
        let gone = after.cells.pop().unwrap();
        let only =
            |which: &str| format!("{}: missing from the {which} run", gone.subject.describe());
        assert_eq!(compare(before, &after).failures(99.0), [only("second")]);
        assert_eq!(compare(&after, before).failures(99.0), [only("first")]);
        let mut silent = before.clone();
        for round in &mut silent.cells[0].rounds {
            round.operations.remove(op::HAND_OFF);
        }
        let failures = compare(before, &silent).failures(99.0);
        let lost = format!(
            "{}: hand-off is not in the second run",
            before.cells[0].subject.describe()
        );
        assert_eq!(failures, [lost]);
        assert_eq!(compare(&silent, before).failures(99.0), [""; 0]);
        let mut unseen = before.clone();
        for round in &mut unseen.cells[0].rounds {
            round.overlap_check = None;
        }
        assert_eq!(compare(before, &unseen).failures(99.0).len(), 1);
    }

    /// Each of these passed once: something empty or failed cannot get worse.
    #[test]
    fn runs_that_are_incomplete_are_unfit_for_the_gate() {
        let mut whole = synthetic::shared().clone();
        for round in whole.cells.iter_mut().flat_map(|cell| &mut cell.rounds) {
            round.errors.clear();
        }
        assert_eq!(compare(&whole, &whole).unfit(), [""; 0]);
        let mut hollow = whole.clone();
        for cell in &mut hollow.cells {
            cell.rounds.clear();
        }
        let mut failing = whole.clone();
        for round in &mut failing.cells[0].rounds {
            round.errors.insert("timeout".to_owned(), 500);
        }
        for (bad, count, words) in [
            (&hollow, whole.cells.len(), "0 of 3 rounds"),
            (
                &failing,
                whole.cells[0].rounds.len(),
                "500 times \"timeout\"",
            ),
        ] {
            for (comparison, which) in [
                (
                    compare(&whole, bad),
                    "the second run is incomplete: hot-lock",
                ),
                (
                    compare(bad, &whole),
                    "the first run is incomplete: hot-lock",
                ),
            ] {
                let unfit = comparison.unfit();
                assert_eq!(unfit.len(), count, "{unfit:?}");
                assert!(unfit[0].starts_with(which), "{unfit:?}");
                assert!(unfit.iter().all(|problem| problem.contains(words)));
            }
        }
    }

    #[test]
    fn one_round_or_two_leave_the_noise_unknown() {
        for (rounds, verdict) in [
            (1, Verdict::NoiseUnknown),
            (2, Verdict::NoiseUnknown),
            (3, Verdict::Worse),
        ] {
            let mut before = synthetic::shared().clone();
            before.cells.truncate(1);
            let mut after = before.clone();
            before.cells[0].rounds.truncate(rounds);
            for round in &mut after.cells[0].rounds {
                round.duration_ns *= 2;
            }
            let comparison = compare(&before, &after);
            let deltas = &comparison.pairs[0].deltas;
            let rate = deltas
                .iter()
                .find(|delta| delta.measure == Measure::Throughput)
                .unwrap();
            assert_eq!(rate.verdict, verdict, "{rounds} rounds");
            assert!(rate.is_worse_by(10.0));
        }
    }
}
