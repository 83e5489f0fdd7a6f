//! Writes the results to proof/protocols/README.md.

use std::fmt::Write as _;

use crate::catalogue::Case;
use crate::explore::Outcome;

/// The marker before the tables.
pub const BEGIN: &str = "<!-- locktopus-proofs --write: begin -->\n";
/// The marker after them.
pub const END: &str = "<!-- locktopus-proofs --write: end -->\n";

/// The row of one run.
#[must_use]
pub fn row(case: &Case, outcome: &Outcome) -> String {
    let (model, bounds) = (case.model, case.bounds);
    match (case.without, &outcome.broken) {
        (Some((rule, _)), Some(broken)) => {
            let (length, what) = (broken.actions.len(), broken.property);
            format!("| {model} | {rule} | {what} | {length} | {bounds} |")
        }
        _ => {
            let (states, steps, depth) = (outcome.states, outcome.steps, outcome.depth);
            let night = if case.long { ", at night" } else { "" };
            format!("| {model} | {bounds}{night} | {states} | {steps} | {depth} |")
        }
    }
}

/// The page's row for a run that is not made each time, if there is one.
#[must_use]
pub fn row_on<'a>(page: &'a str, case: &Case) -> Option<&'a str> {
    let start = format!("| {} | {}, at night |", case.model, case.bounds);
    page.lines().find(|line| line.starts_with(&start))
}

/// Both tables, from these rows.
#[must_use]
pub fn tables(runs: &[(Case, String)]) -> String {
    let rows = |shipped: bool| {
        let wanted = runs
            .iter()
            .filter(move |(case, _)| case.without.is_none() == shipped);
        wanted.fold(String::new(), |mut text, (_, row)| {
            let _ = writeln!(text, "{row}");
            text
        })
    };
    let columns = "---|".repeat(5);
    format!(
        "| as shipped | within | states | steps | depth |\n|{columns}\n{}\n\
         The property that breaks without a rule, and the fewest actions that break it:\n\n\
         | model | without | broken property | actions | within |\n|{columns}\n{}",
        rows(true),
        rows(false)
    )
}
