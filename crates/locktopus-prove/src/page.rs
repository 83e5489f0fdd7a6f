//! The table in docs/testing.md.

use std::fmt::Write as _;
use std::path::Path;

use crate::kept::Kept;
use crate::levels::LEVELS;

const PAGE: &str = "docs/testing.md";
const BEGIN: &str = "<!-- scripts/prove: begin -->\n";
const END: &str = "<!-- scripts/prove: end -->\n";

/// The table of these results. A level without one has a row that says so.
pub(crate) fn table(kept: &Kept) -> String {
    let mut text =
        "| level | generates | cases | violations | mutants noticed / not | on commit |\n\
                    |---|---|---|---|---|---|\n"
            .to_owned();
    for level in LEVELS {
        let _ = match kept.levels.get(level.name) {
            None => writeln!(
                text,
                "| {} | {} | not run | | | |",
                level.name, level.generates
            ),
            Some(entry) => {
                let outcome = &entry.outcome;
                let mutants = match (outcome.killed, outcome.survived) {
                    (Some(killed), Some(survived)) => format!("{killed} / {survived}"),
                    _ => "-".to_owned(),
                };
                let exclusive = outcome.exclusive.map_or_else(String::new, |number| {
                    format!(", exclusion required in {number}")
                });
                writeln!(
                    text,
                    "| {} | {} | {} {}{exclusive} | {} | {mutants} | {} |",
                    level.name,
                    level.generates,
                    outcome.cases,
                    level.cases,
                    outcome.violations,
                    entry.commit,
                )
            }
        };
    }
    text
}

/// Puts the table into the page.
///
/// # Errors
///
/// If there is no page, or no place for it.
pub(crate) fn write(root: &Path, table: &str) -> Result<(), String> {
    let (mut page, begin, end) = read(root)?;
    page.replace_range(begin..end, table);
    std::fs::write(root.join(PAGE), page).map_err(|error| format!("{PAGE}: {error}"))
}

/// Whether the page has this table.
///
/// # Errors
///
/// If it has another.
pub(crate) fn check(root: &Path, table: &str) -> Result<(), String> {
    let (page, begin, end) = read(root)?;
    match &page[begin..end] == table {
        true => Ok(()),
        false => Err(format!(
            "{PAGE} is not what docs/testing.json says: run scripts/prove"
        )),
    }
}

fn read(root: &Path) -> Result<(String, usize, usize), String> {
    let page =
        std::fs::read_to_string(root.join(PAGE)).map_err(|error| format!("{PAGE}: {error}"))?;
    let places = page.find(BEGIN).zip(page.find(END));
    let (begin, end) = places.ok_or_else(|| format!("{PAGE} has no place for the table"))?;
    Ok((page, begin + BEGIN.len(), end))
}
