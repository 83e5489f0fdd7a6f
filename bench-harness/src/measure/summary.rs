//! The part of runs that is kept: figures by round, without histograms.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::measure::derive::{self, Measure, Quantile, Spread, caveats, operations};
use crate::measure::model::{Cell, Environment, Harness, Report, Run, Skipped, Subject, op};

/// Raised when a reader of the previous version would misread a file.
const VERSION: u32 = 1;
/// Figures are kept to this many digits; at best three are meaningful.
const DIGITS: i32 = 4;

/// The figures of one or several runs on one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    version: u32,
    /// The runs, in the order they were given.
    pub runs: Vec<Run>,
    /// The program that measured.
    pub harness: Harness,
    /// The machine.
    pub environment: Environment,
    /// The measured cells.
    pub cells: Vec<SummaryCell>,
    /// Cells that could not be measured, and what they would need.
    pub skipped: Vec<Skipped>,
    /// Notes for the reader, from the runs and from their data.
    pub notes: Vec<String>,
}

/// The figures of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SummaryCell {
    /// The index of its run. A ratio is only made of figures of one run.
    pub run: usize,
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

/// Why there is no summary.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SummaryError {
    /// There is nothing to summarise.
    #[error("no run was given")]
    NoRun,
    /// A run was passed twice, and its figures would count twice.
    #[error("run {run} was given twice")]
    Twice {
        /// Which run.
        run: String,
    },
    /// Figures of different machines or programs do not belong on one page.
    #[error("run {run} was made {what} than run {first}; measure again, or summarise them apart")]
    Differs {
        /// The run that differs.
        run: String,
        /// The first run, for comparison.
        first: String,
        /// In what.
        what: &'static str,
    },
    /// On a busy machine the figures show the machine.
    #[error(
        "a run began at a load average of {load:.2}; pages are made from runs that began at 1.0 at most (run --idle)"
    )]
    Busy {
        /// The load average over a minute.
        load: f64,
    },
    /// A measurement that failed says nothing about a target.
    #[error("run {run} cannot become a page: {problem}")]
    Incomplete {
        /// Which run.
        run: String,
        /// What is missing, or failed.
        problem: String,
    },
    /// A page from a part of the plan would look like the whole, and so would one with extra cells
    /// or shorter rounds.
    #[error(
        "these runs cannot become a page: {count} cells or figures differ from bench-harness/scenarios/targets.toml and \
         its goals: {first}"
    )]
    NotThePlan {
        /// How many.
        count: usize,
        /// The first of them.
        first: String,
    },
    /// The file cannot be read.
    #[error("{path}: {source}", path = .path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The text is not a summary.
    #[error("{path}: not a summary of this version: {problem}; write it again from the run", path = .path.display())]
    Parse {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

impl Summary {
    /// Summarises runs of one program on one machine.
    ///
    /// # Errors
    ///
    /// [`SummaryError::NoRun`], [`SummaryError::Twice`] and [`SummaryError::Differs`].
    pub fn of(reports: &[Report]) -> Result<Self, SummaryError> {
        let Some(first) = reports.first() else {
            return Err(SummaryError::NoRun);
        };
        let mut summary = Self {
            version: VERSION,
            runs: Vec::new(),
            harness: first.harness.clone(),
            environment: first.environment.clone(),
            cells: Vec::new(),
            skipped: Vec::new(),
            notes: Vec::new(),
        };
        for report in reports {
            if let Some(what) = difference(first, report) {
                return Err(SummaryError::Differs {
                    run: report.run.id.clone(),
                    first: first.run.id.clone(),
                    what,
                });
            }
            if summary.runs.iter().any(|run| run.id == report.run.id) {
                let run = report.run.id.clone();
                return Err(SummaryError::Twice { run });
            }
            summary.add(report);
        }
        Ok(summary)
    }

    fn add(&mut self, report: &Report) {
        let run = self.runs.len();
        self.cells.extend(SummaryCell::all(report, run));
        self.runs.push(report.run.clone());
        for skipped in &report.skipped {
            if !self.skipped.contains(skipped) {
                self.skipped.push(skipped.clone());
            }
        }
        for note in report.notes.iter().cloned().chain(caveats(report)) {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }

    /// Reads a summary.
    ///
    /// # Errors
    ///
    /// [`SummaryError::Io`] and [`SummaryError::Parse`].
    pub fn load(path: &Path) -> Result<Self, SummaryError> {
        let text = std::fs::read_to_string(path).map_err(|source| SummaryError::Io {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&text, path)
    }

    /// Reads a summary from its text; errors show `path` as the source.
    ///
    /// # Errors
    ///
    /// [`SummaryError::Parse`].
    pub fn parse(text: &str, path: &Path) -> Result<Self, SummaryError> {
        let bad = |problem: String| SummaryError::Parse {
            path: path.to_owned(),
            problem,
        };
        let summary: Self = serde_json::from_str(text).map_err(|error| bad(error.to_string()))?;
        if summary.version != VERSION {
            return Err(bad(format!("version {}", summary.version)));
        }
        Ok(summary)
    }

    /// The summary as text: a line for each cell, so that diffs are readable.
    #[must_use]
    pub fn to_json(&self) -> String {
        format!(
            "{{\n\"version\": {},\n\"runs\": {},\n\"harness\": {},\n\"environment\": {},\n\
             \"skipped\": {},\n\"notes\": {},\n\"cells\": {}\n}}\n",
            self.version,
            lines(&self.runs),
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

fn difference(first: &Report, other: &Report) -> Option<&'static str> {
    let (a, b) = (&first.environment, &other.environment);
    if (&a.cpu_model, a.logical_cores, &a.kernel) != (&b.cpu_model, b.logical_cores, &b.kernel) {
        Some("on another machine")
    } else if a.pinning != b.pinning {
        Some("with other pinning")
    } else if first.harness != other.harness {
        Some("by another build")
    } else {
        None
    }
}

impl SummaryCell {
    /// The cells of a report that measured anything.
    #[must_use]
    pub fn all(report: &Report, run: usize) -> Vec<Self> {
        let cells = report.cells.iter();
        cells
            .filter(|cell| !cell.rounds.is_empty())
            .map(|cell| Self::of(cell, run))
            .collect()
    }

    fn of(cell: &Cell, run: usize) -> Self {
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
            run,
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
        let summary = Summary::of(std::slice::from_ref(report)).unwrap();
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
    fn runs_that_do_not_belong_together_are_refused() {
        let one = synthetic::shared().clone();
        assert!(matches!(Summary::of(&[]), Err(SummaryError::NoRun)));
        let twice = Summary::of(&[one.clone(), one.clone()]).unwrap_err();
        assert_eq!(twice.to_string(), "run synthetic-full was given twice");
        let mut unpinned = synthetic::regressed();
        unpinned.cells.clear();
        let error = Summary::of(&[one, unpinned]).unwrap_err().to_string();
        assert!(error.contains("pinning"), "{error}");
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
