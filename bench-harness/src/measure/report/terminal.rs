//! The aligned tables for the terminal.

use std::fmt::Write as _;

use comfy_table::{Attribute, Cell as Field, Color, Table};

use super::format::{self, NONE};
use crate::measure::derive::{self, Group, Measure, Quantile, Row, Unit, groups};
use crate::measure::model::Report;
use crate::measure::opening;
use crate::measure::summary::SummaryCell;
use crate::shared::render::table::{self, Style, wrap};

/// How to read the tables.
const READ_AS: [&str; 4] = [
    "Latencies are medians over rounds, in µs; p99: 99 of 100 were no longer. ± is half the range of the rounds, or the range \
     itself if it is wide or of only two rounds.",
    "RTT = median PING round trip of the same client in the same round.",
    "W = workers, P = processes they are spread over.",
    "Jain = 1 if all workers got the lock equally often; max/min = the most grants of a worker over the fewest.",
];

/// Renders `report`.
#[must_use]
pub fn render(report: &Report, style: Style) -> String {
    let mut out = header(report, style);
    let found = opening::findings(report);
    let headlines = opening::headlines(&SummaryCell::all(report, 0));
    let mut opening: Vec<(&str, &[String])> = headlines
        .iter()
        .map(|headline| (headline.title.as_str(), headline.said.as_slice()))
        .collect();
    opening.push(("Other results", &found));
    for (title, lines) in opening.into_iter().filter(|(_, lines)| !lines.is_empty()) {
        let _ = writeln!(out, "\n{}", wrap(title, "", style.width));
        for line in lines {
            let _ = writeln!(out, "{}", wrap(line, "  ", style.width));
        }
    }
    let groups = groups(report);
    for group in &groups {
        let _ = writeln!(out, "\n{}", heading(group));
        for line in context(group) {
            let _ = writeln!(out, "{}", wrap(&line, "", style.width));
        }
        let _ = writeln!(out, "{}", cells(group, style));
        let mut rows = group.rows.iter();
        if rows.any(|row| !derive::operations(row.cell).is_empty()) {
            let _ = writeln!(out, "{}", latencies(group, style));
        }
    }
    if groups.is_empty() {
        out.push_str("\nNothing was measured.\n");
    } else {
        out.push('\n');
        for line in READ_AS {
            let _ = writeln!(out, "{}", wrap(line, "", style.width));
        }
    }
    if let Some(note) = opening::reference(report) {
        let _ = writeln!(out, "{}", wrap(&format!("R1 = {note}"), "", style.width));
    }
    for (title, lines) in [
        ("Errors", errors(report)),
        ("Skipped", skipped(report)),
        ("Caveats", derive::caveats(report)),
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

fn header(report: &Report, style: Style) -> String {
    let (run, harness, env) = (&report.run, &report.harness, &report.environment);
    let load = env.load_average_at_start.map_or_else(
        || "load unknown".to_owned(),
        |[one, ..]| format!("load {one:.2} at start"),
    );
    let text = format!(
        "run {id}, {started}, scenario {scenario}, {rounds} rounds, seed {seed}\n\
         {cpu}, {cores} cores, {os}, {pinning}, {load}\n\
         locktopus-bench {version}{git}, {profile} build\n",
        id = run.id,
        started = run.started_at,
        scenario = run.scenario,
        rounds = run.rounds,
        seed = run.seed,
        cpu = env.cpu_model,
        cores = env.logical_cores,
        os = env.os,
        pinning = env.pinning.describe(),
        version = harness.version,
        git = harness
            .git_describe
            .as_ref()
            .map_or_else(String::new, |git| format!(" ({git})")),
        profile = harness.build_profile,
    );
    let wrapped = |line| wrap(line, "", style.width) + "\n";
    text.lines().map(wrapped).collect()
}

fn heading(group: &Group<'_>) -> String {
    let waits = if group.corrected {
        "open loop, timed from the due time"
    } else {
        "closed loop"
    };
    format!("## {} ({waits})", group.title())
}

fn context(group: &Group<'_>) -> Vec<String> {
    let constants: Vec<_> = group
        .constants
        .iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    let xs = derive::Spread::of(
        group
            .rows
            .iter()
            .filter_map(|row| derive::rtt(row.cell))
            .flat_map(|x| [x.min, x.max]),
    );
    let x = xs.map_or_else(
        || "no server: no RTT".to_owned(),
        |x| {
            format!(
                "RTT = {} to {} µs",
                format::micros(x.min),
                format::micros(x.max)
            )
        },
    );
    vec![constants.join(", "), x]
}

/// One number per cell. A narrow terminal drops client CPU and the noise; other formats have them.
fn cells(group: &Group<'_>, style: Style) -> String {
    let order = ["client CPU µs/acq", "±", "max/min", "script p50 µs"];
    narrowed(group, style, &order, |left_out| {
        cell_table(group, style, left_out)
    })
}

/// A table no wider than the terminal. It drops columns in this order while the table is too wide
/// or a name in it takes more than two lines. If that is not enough, it shows as much as fits.
fn narrowed(
    group: &Group<'_>,
    style: Style,
    order: &[&str],
    table: impl Fn(&[&str]) -> Table,
) -> String {
    let tables = (0..=order.len()).map(|count| table(&order[..count]));
    let tables: Vec<(Table, String)> = tables
        .map(|table| {
            let text = table.trim_fmt();
            (table, text)
        })
        .collect();
    let fits = |text: &str| text.lines().map(visible).max() <= Some(usize::from(style.width));
    let is_low = |table: &Table, text: &str| {
        // Between the rule below the header and the one at the end.
        let body = text.lines().skip_while(|line| !line.contains('═')).count();
        body.saturating_sub(2) <= table.row_iter().count() + group.rows.len()
    };
    let low = tables
        .iter()
        .find(|(table, text)| fits(text) && is_low(table, text));
    let chosen = low
        .or_else(|| tables.iter().find(|(_, text)| fits(text)))
        .or_else(|| tables.last());
    chosen.map_or_else(String::new, |(_, text)| text.clone())
}

/// Visible characters of a line, without colour codes.
fn visible(line: &str) -> usize {
    let mut parts = line.split('\u{1b}');
    let plain = parts.next().map_or(0, |start| start.chars().count());
    let coloured = parts.map(|part| part.split_once('m').map_or("", |(_, rest)| rest));
    plain + coloured.map(|rest| rest.chars().count()).sum::<usize>()
}

fn cell_table(group: &Group<'_>, style: Style, left_out: &[&str]) -> Table {
    let load = has_load(group);
    let mut further = further(group);
    further.retain(|(name, _)| !left_out.contains(name));
    let noise = !left_out.contains(&"±");
    let mut names = lead(load);
    names.push("acq/s");
    names.extend(noise.then_some("±"));
    names.extend(["commands/acq", "server CPU µs/acq"]);
    names.extend(further.iter().map(|(name, _)| *name));
    names.push("overlaps");
    let mut table = table::new(&names, style);
    for row in &group.rows {
        let figure =
            |measure: &Measure| Field::new(format::median(measure.of(row.cell), measure.unit()));
        let mut fields = vec![Field::new(&row.series)];
        fields.extend(load.then(|| Field::new(&row.load)));
        fields.push(figure(&Measure::Throughput));
        fields.extend(noise.then(|| {
            let rate = Measure::Throughput;
            Field::new(format::noise(rate.of(row.cell), rate.unit()))
        }));
        fields.extend([Measure::Commands, Measure::ServerCpu].map(|measure| figure(&measure)));
        fields.extend(further.iter().map(|(_, measure)| figure(measure)));
        fields.push(overlap_field(row));
        table.add_row(fields);
    }
    table::align(&mut table, if load { 2 } else { 1 });
    table
}

/// Further columns that suit the group.
fn further(group: &Group<'_>) -> Vec<(&'static str, Measure)> {
    let shared = [("Jain", Measure::Jain), ("max/min", Measure::MaxOverMin)];
    let spent = [
        ("script p50 µs", Measure::Script(Quantile::P50)),
        ("client CPU µs/acq", Measure::ClientCpu),
        ("client bytes each", Measure::ClientMemory),
    ];
    let measured = |measure: &Measure| group.rows.iter().any(|row| measure.of(row.cell).is_some());
    let columns = if measured(&Measure::Jain) {
        shared.to_vec()
    } else {
        spent.to_vec()
    };
    columns
        .into_iter()
        .filter(|(_, measure)| measured(measure))
        .collect()
}

/// The columns of an operation.
const LATENCIES: [&str; 7] = ["p50", "±", "p99", "p99.9", "max", "p50 RTT", "p99 RTT"];

/// One row per cell and operation; only the first row names the cell.
fn latencies(group: &Group<'_>, style: Style) -> String {
    let order = ["p99.9", "p99 RTT", "±", "max"];
    narrowed(group, style, &order, |left_out| {
        latency_table(group, style, left_out)
    })
}

fn latency_table(group: &Group<'_>, style: Style, left_out: &[&str]) -> Table {
    let load = has_load(group);
    let kept = |name: &&str| !left_out.contains(name);
    let mut names = lead(load);
    names.push("operation");
    names.extend(LATENCIES.iter().copied().filter(kept));
    let mut table = table::new(&names, style);
    for row in &group.rows {
        for (at, operation) in derive::operations(row.cell).into_iter().enumerate() {
            let once = |text: &str| {
                if at == 0 {
                    text.to_owned()
                } else {
                    String::new()
                }
            };
            let mut fields = vec![once(&row.series)];
            fields.extend(load.then(|| once(&row.load)));
            fields.push(operation.to_owned());
            let figures = LATENCIES.iter().zip(latency_fields(row, operation));
            let figures = figures.filter(|(name, _)| kept(name));
            fields.extend(figures.map(|(_, figure)| figure));
            table.add_row(fields);
        }
    }
    table::align(&mut table, if load { 3 } else { 2 });
    table
}

fn latency_fields(row: &Row<'_>, operation: &str) -> [String; 7] {
    let figure = |measure: Measure| format::median(measure.of(row.cell), measure.unit());
    let latency = |quantile| figure(Measure::Latency(operation.to_owned(), quantile));
    let in_rtt = |quantile| figure(Measure::LatencyInRtt(operation.to_owned(), quantile));
    let p50 = Measure::Latency(operation.to_owned(), Quantile::P50).of(row.cell);
    [
        latency(Quantile::P50),
        format::noise(p50, Unit::Nanos),
        latency(Quantile::P99),
        latency(Quantile::P999),
        latency(Quantile::Max),
        in_rtt(Quantile::P50),
        in_rtt(Quantile::P99),
    ]
}

fn has_load(group: &Group<'_>) -> bool {
    group.rows.iter().any(|row| !row.load.is_empty())
}

fn lead(load: bool) -> Vec<&'static str> {
    if load {
        vec!["who", "load"]
    } else {
        vec!["who"]
    }
}

fn overlap_field(row: &Row<'_>) -> Field {
    match derive::overlaps(row.cell) {
        None => Field::new(NONE),
        Some(check) if check.found == 0 => Field::new("0").fg(Color::Green),
        Some(check) => Field::new(format::count(check.found))
            .fg(Color::Red)
            .add_attribute(Attribute::Bold),
    }
}

fn errors(report: &Report) -> Vec<String> {
    let mut lines = Vec::new();
    for group in groups(report) {
        for row in &group.rows {
            for (kind, count) in derive::errors(row.cell) {
                let times = format::count(count);
                lines.push(format!(
                    "{}, {}: {kind} {times} times",
                    group.title(),
                    row.label()
                ));
            }
        }
    }
    lines
}

fn skipped(report: &Report) -> Vec<String> {
    report
        .skipped
        .iter()
        .map(|skip| format!("{}: needs {}", skip.what, skip.needs))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::synthetic;

    #[test]
    fn fits_a_hundred_columns_without_colour() {
        let text = render(
            synthetic::shared(),
            Style {
                width: 100,
                colour: false,
            },
        );
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
        assert!(!text.contains('\u{1b}'));
    }

    /// Words stay whole: a name that is broken over two lines reads as two.
    #[test]
    fn in_eighty_columns_words_are_not_broken() {
        let text = render(
            synthetic::shared(),
            Style {
                width: 80,
                colour: false,
            },
        );
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}\n{text}");
        }
        let words: std::collections::BTreeSet<_> = text.split_whitespace().collect();
        for group in groups(synthetic::shared()) {
            let labels = group
                .rows
                .iter()
                .map(|row| format!("{} {}", row.series, row.load));
            for word in labels.flat_map(|label| {
                let words = label.split_whitespace().map(str::to_owned);
                words.collect::<Vec<_>>()
            }) {
                assert!(words.contains(&*word), "{word}\n{text}");
            }
        }
    }

    /// A name over three lines is hard to find again; the least important columns make room for it.
    #[test]
    fn columns_make_room_for_long_names() {
        let groups = groups(synthetic::shared());
        let rows = groups[0].rows.len();
        for width in 40..80 {
            let style = Style {
                width,
                colour: false,
            };
            let text = narrowed(&groups[0], style, &["first", "second"], |left_out| {
                let columns = ["first", "second", "third"].into_iter();
                let kept = columns.filter(|name| !left_out.contains(name));
                let names: Vec<&str> = std::iter::once("who").chain(kept).collect();
                let mut table = table::new(&names, style);
                for _ in 0..rows {
                    let mut fields = vec!["redis-rs · standalone · lock".to_owned()];
                    fields.resize(names.len(), "1,234,567".to_owned());
                    table.add_row(fields);
                }
                table::align(&mut table, 1);
                table
            });
            // Three rules and the header; no name has a third line while a column can be dropped.
            let lines = text.lines().count();
            assert!(
                !text.contains("second") || lines <= 4 + 2 * rows,
                "{width}: {text}"
            );
        }
    }

    /// Colour codes take no room, so no column is dropped for them.
    #[test]
    fn colours_change_no_columns() {
        let heads = |colour| {
            let text = render(synthetic::shared(), Style { width: 80, colour });
            let words = ["±", "max/min", "p99.9", "client"];
            words.map(|word| text.matches(word).count())
        };
        assert_eq!(heads(true), heads(false));
    }

    #[test]
    fn colour_only_on_request() {
        let style = Style {
            width: 120,
            colour: true,
        };
        assert!(render(synthetic::shared(), style).contains('\u{1b}'));
    }

    #[test]
    fn opens_with_what_was_found() {
        let text = render(synthetic::shared(), Style::default());
        let (found, figures) = (text.find("No lock had two"), text.find("## "));
        assert!(found.is_some() && found < figures, "{text}");
    }

    #[test]
    fn says_what_is_missing() {
        let text = render(&synthetic::memory_only(1), Style::default());
        assert!(text.contains("no server: no RTT"));
        assert!(text.contains("topology standalone: needs redis-server"));
        assert!(text.contains("SYNTHETIC DATA"));
        assert!(render(&synthetic::empty(), Style::default()).contains("Nothing was measured."));
    }
}
