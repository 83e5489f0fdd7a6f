//! The aligned tables for the terminal.

use std::fmt::Write as _;

use comfy_table::{Attribute, Cell as Field, Color};

use super::format::{self, NONE};
use crate::measure::derive::{self, Group, Measure, Quantile, Row, groups};
use crate::measure::model::Report;
use crate::measure::opening;
use crate::measure::summary::SummaryCell;
use crate::shared::render::table::{self, Style, wrap};

/// How to read the tables.
const READ_AS: [&str; 4] = [
    "Latencies are medians over rounds, in µs; p99: 99 of 100 were no longer. ± is half the range of the rounds, or the range \
     itself if it is wide or of only two rounds. The page report.html has the other quantiles.",
    "RTT = median PING round trip of the same client in the same round.",
    "W = workers, P = processes they are spread over.",
    "Jain = 1 if all workers got the lock equally often.",
];

/// Renders `report`.
#[must_use]
pub fn render(report: &Report, style: Style) -> String {
    let mut out = header(report, style);
    let found = opening::findings(report);
    let headlines = opening::headlines(&SummaryCell::all(report));
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

/// One number per cell; the other formats have more.
fn cells(group: &Group<'_>, style: Style) -> String {
    let load = has_load(group);
    let further = further(group);
    let mut names = lead(load);
    names.extend(["acq/s", "±", "commands/acq", "server CPU µs/acq"]);
    names.extend(further.iter().map(|(name, _)| *name));
    names.push("overlaps");
    let mut table = table::new(&names, style);
    for row in &group.rows {
        let figure =
            |measure: &Measure| Field::new(format::median(measure.of(row.cell), measure.unit()));
        let mut fields = vec![Field::new(&row.series)];
        fields.extend(load.then(|| Field::new(&row.load)));
        let rate = Measure::Throughput;
        fields.push(figure(&rate));
        fields.push(Field::new(format::noise(rate.of(row.cell), rate.unit())));
        fields.extend([Measure::Commands, Measure::ServerCpu].map(|measure| figure(&measure)));
        fields.extend(further.iter().map(|(_, measure)| figure(measure)));
        fields.push(overlap_field(row));
        table.add_row(fields);
    }
    table::align(&mut table, if load { 2 } else { 1 });
    table.trim_fmt()
}

/// Further columns that suit the group.
fn further(group: &Group<'_>) -> Vec<(&'static str, Measure)> {
    let all = [
        ("Jain", Measure::Jain),
        ("client bytes each", Measure::ClientMemory),
    ];
    let measured = |measure: &Measure| group.rows.iter().any(|row| measure.of(row.cell).is_some());
    let all = all.into_iter();
    all.filter(|(_, measure)| measured(measure)).collect()
}

/// One row per cell and operation; only the first row names the cell.
fn latencies(group: &Group<'_>, style: Style) -> String {
    let load = has_load(group);
    let mut names = lead(load);
    names.extend(["operation", "p50", "p99", "max", "p50 RTT"]);
    let mut table = table::new(&names, style);
    for row in &group.rows {
        for (at, operation) in derive::operations(row.cell).into_iter().enumerate() {
            let once = |text: &str| if at == 0 { text } else { "" }.to_owned();
            let mut fields = vec![once(&row.series)];
            fields.extend(load.then(|| once(&row.load)));
            fields.push(operation.to_owned());
            let latency = |quantile| Measure::Latency(operation.to_owned(), quantile);
            let measures = [
                latency(Quantile::P50),
                latency(Quantile::P99),
                latency(Quantile::Max),
                Measure::LatencyInRtt(operation.to_owned(), Quantile::P50),
            ];
            let figure = |of: Measure| format::median(of.of(row.cell), of.unit());
            fields.extend(measures.map(figure));
            table.add_row(fields);
        }
    }
    table::align(&mut table, if load { 3 } else { 2 });
    table.trim_fmt()
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
        let text = render(&synthetic::memory_only(), Style::default());
        assert!(text.contains("no server: no RTT"));
        assert!(text.contains("topology standalone: needs redis-server"));
        assert!(text.contains("SYNTHETIC DATA"));
        assert!(render(&synthetic::empty(), Style::default()).contains("Nothing was measured."));
    }
}
