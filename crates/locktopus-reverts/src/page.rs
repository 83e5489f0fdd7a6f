//! The table as people read it, in docs/testing.md.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use crate::table::Fault;

const PAGE: &str = "docs/testing.md";
const BEGIN: &str = "<!-- scripts/reverts --write: begin -->\n";
const END: &str = "<!-- scripts/reverts --write: end -->\n";

fn table(faults: &[Fault]) -> String {
    let mut text =
        "| | what was wrong | mutants | reverts, and the tests that notice |\n|---|---|---|---|\n"
            .to_owned();
    for fault in faults {
        let mutants: Vec<_> = fault
            .mutants
            .iter()
            .map(|mutants| {
                let file = Path::new(&mutants.file);
                let table = file.file_stem().unwrap_or_default().to_string_lossy();
                format!("{} of `{table}`", mutants.names.len())
            })
            .collect();
        let tests: BTreeSet<_> = fault
            .reverts
            .iter()
            .map(|revert| match revert.test.target.name.as_str() {
                "lib" => format!("`{} --lib`", revert.test.target.package),
                target => format!("`{target}`"),
            })
            .collect();
        let tests: Vec<_> = tests.into_iter().collect();
        let reverts = match fault.reverts.len() {
            0 => String::new(),
            count => format!("{count}: {}", tests.join(", ")),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {reverts} |",
            fault.number,
            fault.fault,
            mutants.join(", ")
        );
    }
    text
}

/// The page, and the places in it between which the table stands.
fn read(root: &Path) -> Result<(String, usize, usize), String> {
    let page =
        std::fs::read_to_string(root.join(PAGE)).map_err(|error| format!("{PAGE}: {error}"))?;
    let places = page.find(BEGIN).zip(page.find(END));
    let (begin, end) = places.ok_or_else(|| format!("{PAGE} has no place for the table"))?;
    Ok((page, begin + BEGIN.len(), end))
}

/// Puts the table into the page.
pub(crate) fn write(root: &Path, faults: &[Fault]) -> Result<(), String> {
    let (mut page, begin, end) = read(root)?;
    page.replace_range(begin..end, &table(faults));
    std::fs::write(root.join(PAGE), page).map_err(|error| format!("{PAGE}: {error}"))
}

/// Whether the page has the table as it is.
pub(crate) fn check(root: &Path, faults: &[Fault]) -> Result<(), String> {
    let (page, begin, end) = read(root)?;
    match page[begin..end] == table(faults) {
        true => Ok(()),
        false => Err(format!(
            "{PAGE} is not up to date: run scripts/reverts --write"
        )),
    }
}
