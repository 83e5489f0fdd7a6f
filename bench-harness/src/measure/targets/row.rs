//! A case of a target in words.

use super::file::is_duration;
use super::judge::LAST_BITS;
use super::{Bound, Line};
use crate::measure::derive::Spread;
use crate::measure::report::format::{self, NONE};

/// One line of a target, as people read it.
#[derive(Clone, Debug)]
pub struct Row {
    /// Name of the figure.
    pub figure: String,
    /// The cell.
    pub case: String,
    /// The figure, or the ratio and the figure.
    pub measured: String,
    /// What it is divided by.
    pub against: String,
    /// The bound.
    pub bound: String,
    /// The result.
    pub outcome: &'static str,
}

impl Row {
    /// A line in words.
    #[must_use]
    pub fn of(line: &Line<'_>) -> Self {
        let figure = &line.check.figure;
        let known = line.of.only("scenario");
        let against = line.over.as_ref().map_or_else(
            || NONE.to_owned(),
            |over| {
                let reference = one(line.reference, figure);
                format!("{}: {reference}", over.describe(&line.of))
            },
        );
        let within = line.check.per.is_some();
        let measured = match line.value {
            Some(value) if within => range(value, &times),
            Some(value) if line.over.is_some() => {
                format!("{} ({})", range(value, &times), one(line.figure, figure))
            }
            _ => line.figure.map_or_else(
                || NONE.to_owned(),
                |spread| range(spread, &|value| text(value, figure)),
            ),
        };
        Self {
            figure: line.check.name(),
            case: line.of.describe(&known),
            measured,
            against,
            bound: bound(line),
            outcome: line.outcome.name(),
        }
    }
}

pub(super) fn one(spread: Option<Spread>, figure: &str) -> String {
    spread.map_or_else(|| NONE.to_owned(), |spread| text(spread.median, figure))
}

/// The median, and the smallest and the largest round.
fn range(spread: Spread, text: &dyn Fn(f64) -> String) -> String {
    let median = text(spread.median);
    if spread.rounds < 2 || text(spread.min) == text(spread.max) {
        return median;
    }
    format!("{median} [{} … {}]", text(spread.min), text(spread.max))
}

fn times(ratio: f64) -> String {
    format!("{} ×", number(ratio))
}

/// A rounding tie must not depend on the last bit of a number, which JSON readers do not agree on.
pub(super) fn number(value: f64) -> String {
    format::number(value * (1.0 + LAST_BITS))
}

fn text(value: f64, figure: &str) -> String {
    match figure {
        figure if figure.ends_with(" RTT") => format!("{} RTT", number(value)),
        figure if is_duration(figure) => format::natural(value * (1.0 + LAST_BITS)),
        figure if figure.ends_with(" share") => format!("{} %", number(value * 100.0)),
        "client memory" => format!("{} B", number(value)),
        _ => number(value),
    }
}

fn bound(line: &Line<'_>) -> String {
    let (sign, bound): (_, &Bound) = match (&line.check.at_most, &line.check.at_least) {
        (Some(most), _) => ("≤", most),
        (None, Some(least)) => ("≥", least),
        (None, None) => return NONE.to_owned(),
    };
    let value = if line.check.is_ratio() {
        times(bound.value())
    } else {
        text(bound.value(), &line.check.figure)
    };
    format!("{sign} {value}")
}
