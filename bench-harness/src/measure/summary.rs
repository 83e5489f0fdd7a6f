//! The part of a run that is kept: figures by round, without histograms.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::measure::derive::{self, Measure, Quantile, Spread, caveats, operations};
use crate::measure::model::{Cell, Environment, Harness, Report, Run, Skipped, Subject, op};
use crate::shared::file::{self, FileError};

/// Raised when a reader of the previous version would misread a file.
const VERSION: u32 = 2;
/// Figures are kept to this many digits; at best three are meaningful.
const DIGITS: i32 = 4;

/// The figures of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    version: u32,
    /// The run.
    pub run: Run,
    /// The program that measured.
    pub harness: Harness,
    /// The machine.
    pub environment: Environment,
    /// The measured cells.
    pub cells: Vec<SummaryCell>,
    /// Cells that could not be measured, and what they would need.
    pub skipped: Vec<Skipped>,
    /// Notes for the reader, from the run and from its data.
    pub notes: Vec<String>,
}

/// The figures of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SummaryCell {
    /// The measured combination.
    pub subject: Subject,
    /// Holds that overlapped although they must not; `None` if that was not checked.
    pub overlaps: Option<u64>,
    /// Failed operations.
    pub errors: u64,
    /// Numbers of the rounds.
    pub rounds: Vec<u32>,
    /// By name, one value for each of `rounds`. Durations are in nanoseconds.
    pub figures: BTreeMap<String, Vec<Option<f64>>>,
}

impl Summary {
    /// Summarises a run.
    #[must_use]
    pub fn of(report: &Report) -> Self {
        let mut notes = report.notes.clone();
        notes.extend(caveats(report));
        Self {
            version: VERSION,
            run: report.run.clone(),
            harness: report.harness.clone(),
            environment: report.environment.clone(),
            cells: SummaryCell::all(report),
            skipped: report.skipped.clone(),
            notes,
        }
    }

    /// Reads a summary.
    ///
    /// # Errors
    ///
    /// [`FileError`].
    pub fn load(path: &Path) -> Result<Self, FileError> {
        let (text, name) = (file::text(path)?, path.display().to_string());
        file::stored(&text, &name, ("version", VERSION))
    }

    /// The summary as text: a line for each cell, so that diffs are readable.
    #[must_use]
    pub fn to_json(&self) -> String {
        format!(
            "{{\n\"version\": {},\n\"run\": {},\n\"harness\": {},\n\"environment\": {},\n\
             \"skipped\": {},\n\"notes\": {},\n\"cells\": {}\n}}\n",
            self.version,
            line(&self.run),
            line(&self.harness),
            line(&self.environment),
            lines(&self.skipped),
            lines(&self.notes),
            lines(&self.cells),
        )
    }
}

/// All keys are text, and nothing has a custom serialiser, so this cannot fail.
fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn lines(values: &[impl Serialize]) -> String {
    if values.is_empty() {
        return "[]".to_owned();
    }
    let values: Vec<String> = values.iter().map(line).collect();
    format!("[\n{}\n]", values.join(",\n"))
}

impl SummaryCell {
    /// The cells of a report that measured anything.
    #[must_use]
    pub fn all(report: &Report) -> Vec<Self> {
        let cells = report.cells.iter();
        cells
            .filter(|cell| !cell.rounds.is_empty())
            .map(Self::of)
            .collect()
    }

    fn of(cell: &Cell) -> Self {
        let mut measures: BTreeMap<String, Measure> = BTreeMap::new();
        for (name, measure) in PER_CELL {
            measures.insert(name.to_owned(), measure);
        }
        for operation in operations(cell) {
            let latency = |quantile| Measure::Latency(operation.to_owned(), quantile);
            let in_rtt = |quantile| Measure::LatencyInRtt(operation.to_owned(), quantile);
            for quantile in Quantile::ALL {
                let name = format!("{operation} {}", quantile.name());
                measures.insert(format!("{name} RTT"), in_rtt(quantile));
                measures.insert(name, latency(quantile));
            }
            let share = Measure::Share(operation.to_owned());
            measures.insert(format!("{operation} share"), share);
        }
        let mut figures: BTreeMap<String, Vec<Option<f64>>> = BTreeMap::new();
        let mut keep = |name: String, values: Vec<Option<f64>>| {
            if values.iter().any(Option::is_some) {
                figures.insert(name, values);
            }
        };
        for (name, measure) in measures {
            let rounds = cell.rounds.iter();
            keep(
                name,
                rounds
                    .map(|r| measure.of_round(r).and_then(rounded))
                    .collect(),
            );
        }
        let rtt = cell.rounds.iter().map(|round| {
            let ping = round.ping.as_ref()?;
            rounded(ping.summary.p50_ns as f64)
        });
        keep(RTT.to_owned(), rtt.collect());
        let checks = derive::overlaps(cell);
        Self {
            subject: cell.subject.clone(),
            overlaps: checks.map(|checks| checks.found),
            errors: derive::errors(cell).values().sum(),
            rounds: cell.rounds.iter().map(|round| round.index).collect(),
            figures,
        }
    }

    /// The median of a figure over the rounds, with the smallest and the largest.
    #[must_use]
    pub fn spread(&self, figure: &str) -> Option<Spread> {
        Spread::of(self.by_round(figure).into_values())
    }

    /// A figure by the number of its round.
    #[must_use]
    pub fn by_round(&self, figure: &str) -> BTreeMap<u32, f64> {
        let values = self.figures.get(figure).into_iter().flatten();
        let pairs = self.rounds.iter().zip(values);
        pairs
            .filter_map(|(&round, &value)| Some((round, value?)))
            .collect()
    }
}

const PER_CELL: [(&str, Measure); 10] = [
    ("acquisitions/s", Measure::Throughput),
    ("commands", Measure::Commands),
    ("commands with scripts", Measure::CommandsWithScripts),
    ("server CPU", Measure::ServerCpu),
    ("client CPU", Measure::ClientCpu),
    ("client memory", Measure::ClientMemory),
    ("script p50", Measure::Script(Quantile::P50)),
    ("script p99", Measure::Script(Quantile::P99)),
    ("Jain", Measure::Jain),
    ("max/min", Measure::MaxOverMin),
];
/// The median round trip of PING.
const RTT: &str = "RTT";

/// Whether a cell can have a figure of this name. Operations may have any name.
pub(super) fn is_figure(name: &str) -> bool {
    if name == RTT || PER_CELL.iter().any(|(known, _)| *known == name) {
        return true;
    }
    let name = name.strip_suffix(" RTT").unwrap_or(name);
    let Some((operation, what)) = name.rsplit_once(' ') else {
        return false;
    };
    let quantile = Quantile::ALL.iter().any(|quantile| quantile.name() == what);
    op::ORDER.contains(&operation) && (quantile || what == "share")
}

/// Stands for infinity, which JSON cannot express: the ratio to a worker that starved.
const INFINITE: f64 = 1e9;

fn rounded(value: f64) -> Option<f64> {
    if value.is_nan() {
        return None;
    }
    let value = value.min(INFINITE);
    if value == 0.0 {
        return Some(0.0);
    }
    let scale = 10_f64.powi(DIGITS - 1 - value.abs().log10().floor() as i32);
    Some((value * scale).round() / scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::synthetic;

    #[test]
    fn a_summary_says_what_the_report_says_and_survives_the_file() {
        let report = synthetic::shared();
        let summary = Summary::of(report);
        assert_eq!(summary.cells.len(), report.cells.len());
        let (cell, full) = (&summary.cells[0], &report.cells[0]);
        assert_eq!(cell.subject, full.subject);
        for round in &full.rounds {
            let p50 = round.operations[op::HAND_OFF].summary.p50_ns as f64;
            let kept = cell.by_round("hand-off p50")[&round.index];
            assert!((kept / p50 - 1.0).abs() < 1e-3, "{kept} {p50}");
        }
        let back: Summary = serde_json::from_str(&summary.to_json()).unwrap();
        assert_eq!(back, summary);
    }

    #[test]
    fn figures_are_known_by_name() {
        for name in [
            "commands",
            "RTT",
            "hand-off p50",
            "hand-off p99 RTT",
            "write wait share",
        ] {
            assert!(is_figure(name), "{name}");
        }
        for name in ["command", "hand-off p51", "handoff p50", "p50", ""] {
            assert!(!is_figure(name), "{name}");
        }
    }
}
