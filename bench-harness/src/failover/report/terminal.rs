//! The tables for the terminal.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use comfy_table::{Attribute, Cell as Field, Color};

use super::columns::{Figure, HEADINGS, Tone, figures};
use super::said;
use crate::failover::completeness;
use crate::failover::model::{CellReport, FailoverReport};
use crate::shared::render::table::Style;
use crate::shared::render::table::{self, wrap};

/// Renders `report`.
#[must_use]
pub fn render(report: &FailoverReport, style: Style) -> String {
    let mut out = header(report, style);
    for (scenario, about) in scenarios(report) {
        let of = |cell: &&CellReport| cell.scenario == scenario;
        let cells: Vec<_> = report.cells.iter().filter(of).collect();
        let heading = wrap(&format!("## {scenario}: {about}"), "", style.width);
        let _ = write!(out, "\n{heading}\n{}\n", matrix(&cells, style));
    }
    if report.cells.is_empty() {
        out.push_str("\nNothing was done.\n");
    }
    let skipped = report.skipped.iter();
    let skipped = skipped.map(|skip| format!("{}: needs {}", skip.what, skip.needs));
    for (title, lines) in [
        (
            "Promises that were not kept",
            broken_promises(&report.cells),
        ),
        (
            "Missing, so that this run does not count",
            completeness::missing(report),
        ),
        ("Broken on purpose", caught(report)),
        ("Not judged", said::not_required(report)),
        ("Too few updates for a share of them", said::too_few(report)),
        ("Skipped", skipped.collect()),
        ("Notes", report.notes.clone()),
    ] {
        if !lines.is_empty() {
            let _ = writeln!(out, "\n{title}");
        }
        for line in lines {
            let _ = writeln!(out, "{}", wrap(&line, "  ", style.width));
        }
    }
    out
}

fn header(report: &FailoverReport, style: Style) -> String {
    let (run, env) = (&report.run, &report.environment);
    let text = format!(
        "run {}, {}, seed {}\n{}, {} cores, {}, locktopus-bench {}, {} build\n{}\n",
        run.id,
        run.started_at,
        run.seed,
        env.cpu_model,
        env.logical_cores,
        env.os,
        report.harness.version,
        report.harness.build_profile,
        servers(&report.cells),
    );
    let lines = text.lines();
    lines
        .map(|line| wrap(line, "", style.width) + "\n")
        .collect()
}

/// Names and versions of all servers, and how they were started.
pub(in super::super) fn servers<'a>(cells: impl IntoIterator<Item = &'a CellReport>) -> String {
    let all: BTreeSet<_> = cells
        .into_iter()
        .map(|cell| format!("{} ({})", cell.server, cell.provider))
        .collect();
    all.into_iter().collect::<Vec<_>>().join(", ")
}

/// Scenarios in the order of the run.
pub(super) fn scenarios(report: &FailoverReport) -> Vec<(&str, &str)> {
    let mut all: Vec<(&str, &str)> = Vec::new();
    for cell in &report.cells {
        if all.iter().all(|(name, _)| *name != cell.scenario) {
            all.push((&cell.scenario, &cell.about));
        }
    }
    all
}

type Row<'a> = (&'a CellReport, Vec<Figure>);

/// One column for each cell, because a row of all figures is wider than most terminals. As many
/// cells as fit are side by side, the rest below.
fn matrix(cells: &[&CellReport], style: Style) -> String {
    let rows: Vec<_> = cells.iter().map(|cell| (*cell, figures(cell))).collect();
    let heading = HEADINGS.iter().map(|heading| columns(heading)).max();
    let heading = heading.unwrap_or_default() + 1;
    let width = |(cell, figures): &Row<'_>| {
        let texts = figures.iter().map(|figure| columns(&figure.text));
        texts
            .max()
            .unwrap_or_default()
            .max(longest_word(&cell.who()))
            + 2
    };
    let mut tables = Vec::new();
    let mut rest = rows.as_slice();
    while !rest.is_empty() {
        let mut room = usize::from(style.width).saturating_sub(heading);
        let fitting = rest.iter().take_while(|row| {
            let fits = width(row) <= room;
            room = room.saturating_sub(width(row));
            fits
        });
        // A cell wider than the terminal is shown anyway.
        let (these, others) = rest.split_at(fitting.count().max(1));
        tables.push(side_by_side(these, style));
        rest = others;
    }
    tables.join("\n\n")
}

fn side_by_side(rows: &[Row<'_>], style: Style) -> String {
    let names: Vec<_> = rows
        .iter()
        .map(|(cell, _)| format!("{}, {}", cell.topology, cell.who()))
        .collect();
    let names = std::iter::once("").chain(names.iter().map(String::as_str));
    let mut table = table::new(&names.collect::<Vec<_>>(), style);
    for (at, heading) in HEADINGS.iter().enumerate() {
        let figures = rows.iter().map(|(_, figures)| field(&figures[at]));
        table.add_row(std::iter::once(Field::new(heading)).chain(figures));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    table.trim_fmt()
}

fn field(figure: &Figure) -> Field {
    let field = Field::new(&figure.text);
    match figure.tone {
        Tone::Plain => field,
        Tone::Good => field.fg(Color::Green),
        Tone::Bad => field.fg(Color::Red).add_attribute(Attribute::Bold),
    }
}

/// The columns that a text takes: all its letters are one column wide.
fn columns(text: &str) -> usize {
    text.chars().count()
}

fn longest_word(text: &str) -> usize {
    text.split(' ').map(columns).max().unwrap_or_default()
}

/// Broken promises.
pub(in super::super) fn broken_promises<'a>(
    cells: impl IntoIterator<Item = &'a CellReport>,
) -> Vec<String> {
    let of = |cell: &CellReport| {
        let name = format!("{} on {}, {}", cell.scenario, cell.topology, cell.who());
        let all = cell.broken_promises.iter();
        all.cloned()
            .chain(said::machine(cell))
            .map(|problem| format!("{name}: {problem}"))
            .collect::<Vec<_>>()
    };
    cells.into_iter().flat_map(of).collect()
}

pub(super) fn caught(report: &FailoverReport) -> Vec<String> {
    let broken = report.cells.iter().filter(|cell| cell.subject.is_broken());
    broken
        .map(|cell| {
            if cell.caught.is_empty() {
                format!("{}: NOT CAUGHT", cell.subject)
            } else {
                format!("{}: caught by {}", cell.subject, cell.caught.join(", "))
            }
        })
        .collect()
}
