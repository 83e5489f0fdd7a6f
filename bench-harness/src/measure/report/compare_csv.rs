//! A comparison as CSV: one row per cell and figure.

use super::compare::{Comparison, Verdict};
use crate::measure::derive::Unit;

/// Column names, in order.
pub const COLUMNS: [&str; 11] = [
    "cell",
    "figure",
    "unit",
    "a_median",
    "a_min",
    "a_max",
    "b_median",
    "b_min",
    "b_max",
    "change_percent",
    "verdict",
];

/// Renders `comparison`.
///
/// # Errors
///
/// Whatever the CSV writer reports; writing to memory does not fail.
pub fn render(comparison: &Comparison<'_>) -> Result<String, ::csv::Error> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS)?;
    for pair in &comparison.pairs {
        for delta in &pair.deltas {
            let mut row = vec![pair.after.subject.describe(), delta.measure.name()];
            row.push(unit(delta.measure.unit()).to_owned());
            for spread in [delta.before, delta.after] {
                row.extend([spread.median, spread.min, spread.max].map(|v| format!("{v:.4}")));
            }
            row.push(format!("{:.2}", delta.percent));
            row.push(verdict(delta.verdict).to_owned());
            writer.write_record(row)?;
        }
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

const fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanos => "ns",
        Unit::Rtt => "rtt",
        Unit::PerSecond => "per_s",
        Unit::Plain => "",
    }
}

const fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::WithinNoise => "within-noise",
        Verdict::NoiseUnknown => "noise-unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::report::compare::compare;
    use crate::measure::synthetic;

    #[test]
    fn one_row_per_figure() {
        let report = synthetic::shared();
        let comparison = compare(report, report);
        let figures: usize = comparison.pairs.iter().map(|pair| pair.deltas.len()).sum();
        assert_eq!(render(&comparison).unwrap().lines().count(), figures + 1);
    }
}
