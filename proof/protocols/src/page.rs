//! What was proven, as people read it in proof/protocols/README.md.

use std::fmt::Write as _;

use crate::catalogue::Case;
use crate::explore::Outcome;

/// What the tables stand between.
pub const BEGIN: &str = "<!-- locktopus-proofs --write: begin -->\n";
/// The end of them.
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

/// The row that a page has of a run, if it is there: of runs that are not made each time.
#[must_use]
pub fn row_on<'a>(page: &'a str, case: &Case) -> Option<&'a str> {
    let start = format!("| {} | {}, at night |", case.model, case.bounds);
    page.lines().find(|line| line.starts_with(&start))
}

/// Both tables, of these rows.
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
         What breaks when one rule is left out, and after how many actions at the least:\n\n\
         | model | left out | what breaks | actions | within |\n|{columns}\n{}",
        rows(true),
        rows(false)
    )
}
