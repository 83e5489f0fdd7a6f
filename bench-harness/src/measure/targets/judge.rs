//! Compares figures with targets.

use std::collections::BTreeMap;

use super::{Check, Select, Target, Targets};
use crate::measure::derive::{Spread, ratios};
use crate::measure::summary::{Summary, SummaryCell};

/// A number may lose this share of its value on its way through text.
pub(super) const LAST_BITS: f64 = 1e-9;

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// There is no bound.
    Reported,
    /// The median is within the bound.
    Met,
    /// The run lacks the figure.
    NotMeasured,
    /// The median is outside the bound.
    NotMet,
}

impl Outcome {
    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reported => "reported",
            Self::Met => "met",
            Self::NotMeasured => "not measured",
            Self::NotMet => "**not met**",
        }
    }
}

/// A target and its result.
#[derive(Clone, Debug)]
pub struct Judged<'a> {
    /// The target.
    pub target: &'a Target,
    /// One line for each case of each check.
    pub lines: Vec<Line<'a>>,
}

/// One case of one check.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// The check.
    pub check: &'a Check,
    /// The cell it is about.
    pub of: Select,
    /// The cell it is compared with.
    pub over: Option<Select>,
    /// The figure itself.
    pub figure: Option<Spread>,
    /// The figure it is divided by.
    pub reference: Option<Spread>,
    /// The value that is compared with the bound: the figure, or the ratio by round.
    pub value: Option<Spread>,
    /// The result.
    pub outcome: Outcome,
}

impl Judged<'_> {
    /// The worst of its lines.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let outcomes = self.lines.iter().map(|line| line.outcome);
        outcomes.max().unwrap_or(Outcome::NotMeasured)
    }
}

/// Judges a summary.
#[must_use]
pub fn judge<'a>(targets: &'a Targets, summary: &Summary) -> Vec<Judged<'a>> {
    let judged = |target: &'a Target| Judged {
        target,
        lines: target
            .check
            .iter()
            .flat_map(|check| lines(check, summary))
            .collect(),
    };
    targets.target.iter().map(judged).collect()
}

fn lines<'a>(check: &'a Check, summary: &Summary) -> Vec<Line<'a>> {
    let cases = check.each.cases(&check.of).into_iter();
    cases.map(|of| line(check, of, summary)).collect()
}

fn line<'a>(check: &'a Check, of: Select, summary: &Summary) -> Line<'a> {
    let over = check.over.as_ref().map(|over| over.or(&of));
    let figure = figures(check, &of, summary);
    let reference = over.as_ref().map(|over| figures(check, over, summary));
    let value = match &reference {
        None => figure.clone(),
        Some(reference) => ratios(&figure, reference),
    };
    let spread = |by_round: &BTreeMap<u32, f64>| Spread::of(by_round.values().copied());
    let value = spread(&value);
    let outcome = match value {
        None => Outcome::NotMeasured,
        Some(_) if check.at_most.is_none() && check.at_least.is_none() => Outcome::Reported,
        Some(value) if keeps(check, value.median) => Outcome::Met,
        Some(_) => Outcome::NotMet,
    };
    Line {
        check,
        figure: spread(&figure),
        reference: reference.as_ref().and_then(spread),
        of,
        over,
        value,
        outcome,
    }
}

fn keeps(check: &Check, value: f64) -> bool {
    let most = check.at_most.as_ref();
    let least = check.at_least.as_ref();
    most.is_none_or(|most| value <= most.value() * (1.0 + LAST_BITS))
        && least.is_none_or(|least| value >= least.value() * (1.0 - LAST_BITS))
}

/// The figure by round, of the one cell that matches. Two matching cells are a mistake in the list,
/// and count as none.
fn figures(check: &Check, select: &Select, summary: &Summary) -> BTreeMap<u32, f64> {
    let cells = summary.cells.iter();
    let mut meant = cells.filter(|cell| select.matches(&cell.subject));
    let (Some(cell), None) = (meant.next(), meant.next()) else {
        return BTreeMap::new();
    };
    let mut values = cell.by_round(&check.figure);
    if let Some(less) = &check.less {
        subtract(&mut values, cell, less);
    }
    if let Some(per) = &check.per {
        values = ratios(&values, &cell.by_round(per));
    }
    values
}

fn subtract(values: &mut BTreeMap<u32, f64>, cell: &SummaryCell, less: &str) {
    let less = cell.by_round(less);
    values.retain(|round, _| less.contains_key(round));
    for (round, value) in values {
        *value -= less[round];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::synthetic;

    fn judged(check: &str, test: impl FnOnce(&[Line<'_>])) {
        let text =
            format!("[[target]]\nid = \"a\"\nwhat = \"\"\ngoal = \"\"\n[[target.check]]\n{check}");
        let targets = Targets::parse(&text).unwrap();
        let summary = Summary::of(synthetic::shared());
        test(&judge(&targets, &summary)[0].lines);
    }

    const HOT: &str = "of = { scenario = \"hot-lock\", workers = 32 }";

    #[test]
    fn ratios_are_taken_round_by_round() {
        let check = format!(
            "figure = \"commands\"\n{HOT}\nover = {{ strategy = \"rslock\" }}\nat_most = 0.5"
        );
        judged(&check, |lines| {
            let [line] = lines else { panic!("{lines:?}") };
            let (own, other) = (line.figure.unwrap(), line.reference.unwrap());
            let value = line.value.unwrap();
            assert!((value.median - own.median / other.median).abs() < 0.05);
            assert_eq!((value.rounds, line.outcome), (3, Outcome::Met));
        });
    }

    #[test]
    fn every_outcome_there_is() {
        let outcome = |rest: &str| {
            let mut found = None;
            judged(&format!("figure = \"commands\"\n{HOT}\n{rest}"), |lines| {
                found = Some(lines[0].outcome);
            });
            found.unwrap()
        };
        assert_eq!(outcome(""), Outcome::Reported);
        assert_eq!(outcome("at_least = 1.5"), Outcome::Met);
        assert_eq!(outcome("at_most = 1.5"), Outcome::NotMet);
        let nobody = "over = { strategy = \"nobody\" }\nat_most = 1.5";
        assert_eq!(outcome(nobody), Outcome::NotMeasured);
    }

    #[test]
    fn each_combination_is_a_line_and_what_is_ambiguous_is_none() {
        judged(
            "figure = \"Jain\"\nof = { scenario = \"hot-lock\" }\neach.workers = [2, 8, 300]",
            |lines| {
                let outcomes: Vec<_> = lines.iter().map(|line| line.outcome).collect();
                let expected = [Outcome::Reported, Outcome::Reported, Outcome::NotMeasured];
                assert_eq!(outcomes, expected);
            },
        );
        judged(
            "figure = \"Jain\"\nof = { scenario = \"hot-lock\" }",
            |lines| assert_eq!(lines[0].outcome, Outcome::NotMeasured),
        );
    }

    #[test]
    fn per_divides_within_the_cell() {
        let check =
            format!("figure = \"hand-off p99\"\nper = \"hand-off p50\"\n{HOT}\nat_most = 50");
        judged(&check, |lines| {
            let value = lines[0].value.unwrap().median;
            assert!(value > 1.0 && value < 50.0, "{value}");
            assert_eq!(lines[0].outcome, Outcome::Met);
        });
    }

    #[test]
    fn less_is_subtracted_within_the_cell() {
        let check = format!("figure = \"hand-off p99\"\nless = \"hand-off p50\"\n{HOT}");
        judged(&check, |lines| {
            let difference = lines[0].value.unwrap().median;
            let summary = Summary::of(synthetic::shared());
            let cell = summary
                .cells
                .iter()
                .find(|cell| lines[0].of.matches(&cell.subject))
                .unwrap();
            let of = |figure: &str| {
                Spread::of(cell.by_round(figure).into_values())
                    .unwrap()
                    .median
            };
            assert!(difference > 0.0 && difference < of("hand-off p99"));
        });
    }
}
