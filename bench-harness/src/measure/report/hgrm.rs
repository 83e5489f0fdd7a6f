//! `.hgrm`: the percentile text that `HdrHistogram` tools plot.

use std::fmt::Write as _;

use hdrhistogram::Histogram;

use crate::measure::derive::{merged, operations};
use crate::measure::model::{Cell, HistogramError, Report};

/// Reporting steps per halving of the distance to 100 %, as in the reference implementations.
const TICKS: u32 = 5;
/// Values are written in microseconds.
const SCALE: f64 = 1_000.0;

/// One file to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Name without a directory, unique within the report.
    pub name: String,
    /// Content.
    pub text: String,
}

/// One file per cell and operation, merged over the rounds.
///
/// # Errors
///
/// [`HistogramError`] when a stored histogram is damaged.
pub fn files(report: &Report) -> Result<Vec<File>, HistogramError> {
    let mut files = Vec::new();
    for (at, cell) in report.cells.iter().enumerate() {
        for operation in operations(cell) {
            let histogram = merged(cell, operation)?;
            files.push(File {
                name: file_name(at, cell, operation),
                text: text(&histogram),
            });
        }
    }
    Ok(files)
}

/// The percentile distribution of `histogram` (nanoseconds) in microseconds.
#[must_use]
pub fn text(histogram: &Histogram<u64>) -> String {
    let mut out = format!(
        "{:>12} {:>14} {:>10} {:>14}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    let mut total = 0;
    for step in histogram.iter_quantiles(TICKS) {
        let value = step.value_iterated_to() as f64 / SCALE;
        let quantile = step.quantile_iterated_to();
        total += step.count_since_last_iteration();
        // Writing to a string cannot fail.
        let _ = if quantile < 1.0 {
            writeln!(
                out,
                "{value:12.3} {quantile:2.12} {total:10} {:14.2}",
                1.0 / (1.0 - quantile)
            )
        } else {
            writeln!(out, "{value:12.3} {quantile:2.12} {total:10}")
        };
    }
    let scaled = |value: f64| value / SCALE;
    let _ = write!(
        out,
        "#[Mean    = {:12.3}, StdDeviation   = {:12.3}]\n\
         #[Max     = {:12.3}, Total count    = {:12}]\n\
         #[Buckets = {:12}, SubBuckets     = {:12}]\n",
        scaled(histogram.mean()),
        scaled(histogram.stdev()),
        scaled(histogram.max() as f64),
        histogram.len(),
        histogram.buckets(),
        sub_buckets(histogram),
    );
    out
}

/// Smallest power of two that resolves the wanted digits twice over.
fn sub_buckets(histogram: &Histogram<u64>) -> u64 {
    (2 * 10_u64.pow(u32::from(histogram.sigfig()))).next_power_of_two()
}

fn file_name(at: usize, cell: &Cell, operation: &str) -> String {
    let s = &cell.subject;
    let parts = [
        &s.scenario,
        &s.strategy,
        &s.client,
        s.topology.name(),
        &format!("w{}", s.workers),
        operation,
    ];
    let mut name = format!("{at:03}");
    for part in parts {
        name.push('-');
        // Peers choose their own names, so a name must not become a path.
        name.extend(
            part.chars()
                .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }),
        );
    }
    name + ".hgrm"
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::measure::synthetic;

    #[test]
    fn golden() {
        let mut histogram = Histogram::new(3).unwrap();
        for value in 1..=10_u64 {
            histogram.record(value * 1_000).unwrap();
        }
        histogram.record(250_000).unwrap();
        let expected = include_str!("../../../tests/data/golden.hgrm");
        assert_eq!(text(&histogram), expected);
    }

    #[test]
    fn names_are_unique_and_stay_in_their_directory() {
        let mut report = synthetic::shared().clone();
        report.cells[0].subject.strategy = "../../evil name".to_owned();
        let files = files(&report).unwrap();
        let names: BTreeSet<_> = files.iter().map(|file| &file.name).collect();
        assert_eq!(names.len(), files.len());
        assert!(
            names.iter().all(|name| !name.contains(['/', ' '])),
            "{names:?}"
        );
    }

    #[test]
    fn an_empty_histogram_is_still_a_file() {
        assert!(text(&Histogram::new(3).unwrap()).contains("Total count    =            0"));
    }
}
