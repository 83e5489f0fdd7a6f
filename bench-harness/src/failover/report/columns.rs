//! The columns of the table, the same in every renderer.

use super::said;
use crate::failover::model::{CellReport, Spread};
use crate::shared::render::format::{NONE, count, duration};

/// How a figure looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    /// The best possible value, in a cell where it could have been worse.
    Good,
    /// The value shows a failure.
    Bad,
}

/// One figure of a row.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    pub(super) text: String,
    pub(super) tone: Tone,
}

/// Headings of the table.
pub(super) const HEADINGS: [&str; 10] = [
    "faults",
    "double grants per 1,000 (95 %)",
    "longest overlap",
    "overlaps in use",
    "tokens twice / smaller / out of order",
    "stale writes caught / missed",
    "updates lost without / with tokens",
    "outage p50 / p99 / max",
    "told late p50 / max",
    "left",
];

/// The figures of a row, in the order of [`HEADINGS`].
pub(super) fn figures(cell: &CellReport) -> Vec<Figure> {
    let of = &cell.figures;
    let rate = of.double_grants().map_or_else(
        || plain(NONE.to_owned()),
        |rate| {
            let (low, high) = (rate.low_per_1000, rate.high_per_1000);
            let text = format!("{:.0} ({low:.0}–{high:.0})", rate.per_1000);
            good(rate.hits, text)
        },
    );
    let (twice, smaller) = (of.duplicate_tokens, of.falling_tokens);
    let tokens = format!("{twice} / {smaller} / {}", of.unordered_tokens);
    let writes = format!("{} / {}", of.writes.caught, of.writes.missed);
    vec![
        plain(count(of.faults)),
        rate,
        good(of.validity.count, duration(of.validity.longest_ns)),
        good(of.in_use.count, count(of.in_use.count)),
        good(twice + smaller, tokens),
        good(of.writes.missed, writes),
        lost(cell),
        plain(outage(of.outage)),
        plain(told(of.signals.lateness)),
        good(of.leftovers, count(of.leftovers)),
    ]
}

fn plain(text: String) -> Figure {
    let tone = Tone::Plain;
    Figure { text, tone }
}

/// A figure that is good if there were no problems.
fn good(problems: u64, text: String) -> Figure {
    let tone = if problems == 0 { Tone::Good } else { Tone::Bad };
    Figure { text, tone }
}

/// A lock without tokens gives the resource nothing to check. A share of a few updates means
/// nothing, so it is not shown.
fn lost(cell: &CellReport) -> Figure {
    if !cell.subject.is_broken() && !said::is_a_row(cell) {
        return plain(NONE.to_owned());
    }
    let of = &cell.figures;
    let without = format!(
        "{} of {}",
        of.lost_unchecked.lost,
        count(of.lost_unchecked.done)
    );
    let with = match of.lost_checked.done {
        0 => NONE.to_owned(),
        _ => of.lost_checked.lost.to_string(),
    };
    good(of.lost_checked.lost, format!("{without} / {with}"))
}

pub(super) fn outage(of: Spread) -> String {
    if of.count == 0 {
        return NONE.to_owned();
    }
    let [p50, p99, max] = [of.p50_ns, of.p99_ns, of.max_ns].map(duration);
    format!("{p50} / {p99} / {max}")
}

fn told(of: Spread) -> String {
    if of.count == 0 {
        return NONE.to_owned();
    }
    format!("{} / {}", duration(of.p50_ns), duration(of.max_ns))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failover::model::FailoverReport;
    use crate::failover::plan::Subject;

    #[test]
    fn a_share_of_few_updates_is_no_figure() {
        let text = include_str!("../../../tests/data/failover-summary.json");
        let report: FailoverReport = serde_json::from_str(text).unwrap();
        let mut cell = report.cells[0].clone();
        cell.figures.lost_unchecked.done = said::FEWEST_UPDATES;
        assert!(lost(&cell).text.contains(" of 30 / "));
        cell.figures.lost_unchecked.done -= 1;
        assert_eq!(lost(&cell).text, NONE);
        // A lock that is broken on purpose is not compared with others: a few updates suffice.
        cell.subject = Subject::BrokenRelease;
        assert!(lost(&cell).text.contains(" of 29 / "));
    }
}
