//! The page that says which promises are kept.

use std::collections::BTreeMap;

use askama::Template;

use super::file::is_duration;
use super::judge::LAST_BITS;
use super::opening::{self, Compared};
use super::{Bound, Judged, Line, Outcome, Select, Summary, SummaryCell, Targets, judge};
use crate::measure::derive::Spread;
use crate::measure::model::op;
use crate::measure::report::format::{self, NONE};

/// Everything the template needs. Markdown is not escaped: all of it comes from this repository and from
/// names that the harness makes itself.
#[derive(Template)]
#[template(path = "performance.md", escape = "none")]
struct Page<'a> {
    summary: &'a Summary,
    facts: Vec<(&'static str, String)>,
    sections: Vec<Section<'a>>,
    tables: Vec<Table>,
    compared: Vec<Compared>,
    in_words: String,
    overlaps: u64,
    checked: usize,
    errors: u64,
}

/// What stands where nothing is said of what is in the way; no committed page may have it.
pub const UNEXPLAINED: &str = "**Nothing is said of what stands in the way.**";

/// One promise.
struct Section<'a> {
    judged: Judged<'a>,
    rows: Vec<Row>,
}

/// One line of a promise, as people read it.
#[derive(Clone, Debug)]
pub struct Row {
    /// Name of the figure.
    pub figure: String,
    /// Of which cell.
    pub case: String,
    /// The figure, or the ratio and the figure.
    pub measured: String,
    /// What it is divided by.
    pub against: String,
    /// What it must keep.
    pub bound: String,
    /// How it came out.
    pub outcome: String,
}

/// All cells of one scenario.
struct Table {
    scenario: String,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// The page for a summary.
///
/// # Errors
///
/// Whatever the template engine reports; writing to memory does not fail.
pub fn render(targets: &Targets, summary: &Summary) -> Result<String, askama::Error> {
    let sections = judge(targets, summary).into_iter().map(|judged| Section {
        rows: judged.lines.iter().map(Row::of).collect(),
        judged,
    });
    let compared = opening::compared(summary);
    let page = Page {
        summary,
        in_words: opening::in_words(&compared),
        compared,
        facts: facts(summary),
        sections: sections.collect(),
        tables: tables(summary),
        overlaps: summary.cells.iter().filter_map(|cell| cell.overlaps).sum(),
        checked: summary
            .cells
            .iter()
            .filter(|cell| cell.overlaps.is_some())
            .count(),
        errors: summary.cells.iter().map(|cell| cell.errors).sum(),
    };
    page.render()
}

impl Section<'_> {
    fn outcome(&self) -> &'static str {
        self.judged.outcome().name()
    }

    fn is_missed(&self) -> bool {
        self.judged.outcome() == Outcome::NotMet
    }

    /// What stands in the way and what else was tried, while something does.
    fn explanation(&self) -> Option<(&str, &str)> {
        self.judged
            .target
            .explanation()
            .filter(|_| self.is_missed())
    }
}

fn facts(summary: &Summary) -> Vec<(&'static str, String)> {
    let (env, harness) = (&summary.environment, &summary.harness);
    let mut servers: Vec<String> = summary
        .cells
        .iter()
        .filter_map(|cell| cell.subject.server.as_ref())
        .map(|server| format!("{} {}", server.flavour, server.version))
        .collect();
    servers.sort();
    servers.dedup();
    let runs: Vec<_> = summary
        .runs
        .iter()
        .map(|run| format!("{} ({} rounds)", run.started_at, run.rounds))
        .collect();
    vec![
        ("Measured", runs.join(", ")),
        (
            "Machine",
            format!("{}, {} cores", env.cpu_model, env.logical_cores),
        ),
        (
            "System",
            format!("{}, {} ({})", env.os, env.kernel, env.arch),
        ),
        ("Placement", env.pinning.describe()),
        (
            "Load at the start",
            env.load_average_at_start
                .map_or_else(|| "unknown".to_owned(), |[one, ..]| format!("{one:.2}")),
        ),
        ("Round trip, by round", round_trips(summary)),
        ("Servers", servers.join(", ")),
        (
            "Built from",
            format!(
                "{}, {}, {} profile",
                harness.git_describe.as_deref().unwrap_or("unknown"),
                harness.rust_version,
                harness.build_profile
            ),
        ),
    ]
}

/// What a PING took in each round, the median over what was measured in all of them on this machine alone: whether the machine
/// stayed what it was.
fn round_trips(summary: &Summary) -> String {
    let most = summary.cells.iter().map(|cell| cell.rounds.len()).max();
    let mut rounds: BTreeMap<(usize, u32), Vec<f64>> = BTreeMap::new();
    for cell in &summary.cells {
        if Some(cell.rounds.len()) == most && !cell.subject.through_proxy {
            for (round, took) in cell.by_round("RTT") {
                rounds.entry((cell.run, round)).or_default().push(took);
            }
        }
    }
    let medians = rounds
        .into_values()
        .map(|took| one(Spread::of(took), "RTT"));
    let medians: Vec<String> = medians.collect();
    if medians.is_empty() {
        return NONE.to_owned();
    }
    medians.join(", ")
}

impl Row {
    /// A line in words.
    #[must_use]
    pub fn of(line: &Line<'_>) -> Self {
        let figure = &line.check.figure;
        let known = Select {
            scenario: line.of.scenario.clone(),
            ..Select::default()
        };
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
        let close = if line.is_close() { ", close" } else { "" };
        Self {
            figure: line.check.name(),
            case: line.of.describe(&known),
            measured,
            against,
            bound: bound(line),
            outcome: format!("{}{close}", line.outcome.name()),
        }
    }
}

fn one(spread: Option<Spread>, figure: &str) -> String {
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

/// A tie between two texts must not be decided by the last bit of a number: readers of JSON do not agree on it.
fn number(value: f64) -> String {
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

/// What a table shows of each cell besides its operation, where some cell has it.
const COLUMNS: [(&str, &str); 9] = [
    ("acquisitions/s", "acquisitions/s"),
    ("commands", "commands"),
    ("commands with scripts", "… with scripts"),
    ("server CPU", "server CPU"),
    ("script p50", "script p50"),
    ("client CPU", "client CPU"),
    ("client memory", "client memory"),
    ("Jain", "Jain"),
    ("max/min", "max/min"),
];

fn tables(summary: &Summary) -> Vec<Table> {
    let mut scenarios: Vec<&str> = Vec::new();
    for cell in &summary.cells {
        if !scenarios.contains(&cell.subject.scenario.as_str()) {
            scenarios.push(&cell.subject.scenario);
        }
    }
    let cells = |scenario: &str| -> Vec<&SummaryCell> {
        let all = summary.cells.iter();
        all.filter(|cell| cell.subject.scenario == scenario)
            .collect()
    };
    scenarios
        .into_iter()
        .map(|scenario| table(scenario, &cells(scenario)))
        .collect()
}

fn table(scenario: &str, cells: &[&SummaryCell]) -> Table {
    let has = |figure: &str| cells.iter().any(|cell| cell.figures.contains_key(figure));
    let operation = op::ORDER
        .into_iter()
        .find(|operation| has(&format!("{operation} p50")));
    let mut columns: Vec<(String, String)> = Vec::new();
    for quantile in ["p50", "p50 RTT", "p99", "p99 RTT", "max"] {
        columns.extend(operation.map(|operation| {
            let name = format!("{operation} {quantile}");
            (name.clone(), name)
        }));
    }
    columns.extend(
        COLUMNS
            .iter()
            .map(|(figure, name)| ((*figure).to_owned(), (*name).to_owned())),
    );
    columns.retain(|(figure, _)| has(figure));
    let mut head = vec!["who".to_owned()];
    head.extend(columns.iter().map(|(_, name)| name.clone()));
    let rows = cells.iter().map(|cell| {
        let mut fields = vec![who(cell)];
        fields.extend(columns.iter().map(|(figure, _)| {
            let spread = Spread::of(cell.by_round(figure).into_values());
            spread.map_or_else(|| NONE.to_owned(), |spread| text(spread.median, figure))
        }));
        fields
    });
    Table {
        scenario: scenario.to_owned(),
        head,
        rows: rows.collect(),
    }
}

fn who(cell: &SummaryCell) -> String {
    let s = &cell.subject;
    let mut words = vec![s.strategy.clone(), s.lock_kind.clone()];
    if s.client != s.strategy {
        words.push(s.client.clone());
    }
    words.push(match s.nodes {
        0 | 1 => s.topology.name().to_owned(),
        nodes => format!("{} of {nodes}", s.topology.name()),
    });
    if s.workers > 1 {
        words.push(format!("W = {}", s.workers));
    }
    if s.processes > 1 {
        words.push(format!("P = {}", s.processes));
    }
    if s.locks > 1 {
        words.push(format!("{} locks", format::count(u64::from(s.locks))));
    }
    if s.hold_ns > 0 {
        words.push(format!("hold {}", format::duration(s.hold_ns)));
    }
    let told = |name: &str| !matches!(name, "JIT warm-up" | "rounds");
    let options = s.options.iter().filter(|(name, _)| told(name));
    words.extend(options.map(|(name, value)| format!("{name} {value}")));
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::synthetic;

    fn page(targets: &str) -> String {
        let summary = Summary::of(std::slice::from_ref(synthetic::shared())).unwrap();
        render(&Targets::parse(targets).unwrap(), &summary).unwrap()
    }

    const TARGETS: &str = r#"
[[target]]
id = "a"
what = "Hand-off"
goal = "as fast as light"
cost = "light is fast"
tried = "glass: 2 µs"

[[target.check]]
figure = "hand-off p50"
of = { scenario = "hot-lock", workers = 32 }
at_most = "1us"

[[target.check]]
figure = "acquisitions/s"
of = { scenario = "hot-lock", workers = 32 }
over = { strategy = "rslock" }
at_least = 1
"#;

    #[test]
    fn what_is_not_met_says_why_and_what_is_met_does_not() {
        let text = page(TARGETS);
        assert!(
            text.contains("**not met**") && text.contains("light is fast"),
            "{text}"
        );
        assert!(text.contains("Tried: glass: 2 µs"), "{text}");
        assert!(!text.contains(UNEXPLAINED), "{text}");
        let silent = TARGETS
            .replace("cost = \"light is fast\"\n", "")
            .replace("tried = \"glass: 2 µs\"\n", "");
        assert!(page(&silent).contains(UNEXPLAINED));
        assert!(
            text.contains("≤ 1.00 µs") && text.contains("≥ 1.00 ×"),
            "{text}"
        );
        assert!(text.contains("rslock"), "{text}");
        let easier = TARGETS.replace("\"1us\"", "\"1s\"");
        let text = page(&easier);
        assert!(
            !text.contains("not met") && !text.contains("light is fast"),
            "{text}"
        );
    }

    /// A machine that becomes slower is seen, whatever single workloads do.
    #[test]
    fn round_trips_are_told_round_by_round() {
        let mut summary = Summary::of(std::slice::from_ref(synthetic::shared())).unwrap();
        for (at, cell) in summary.cells.iter_mut().enumerate() {
            cell.rounds = vec![0, 1];
            let took = [40_000.0, 50_000.0].map(|took| Some(took + at as f64));
            cell.figures.insert("RTT".to_owned(), took.to_vec());
            cell.subject.through_proxy = false;
        }
        summary.cells.truncate(3);
        summary.cells[0].subject.through_proxy = true;
        // What was measured in fewer rounds would be in one of them only.
        summary.cells[1].rounds = vec![0];
        let third = text(40_002.0, "RTT");
        assert_eq!(
            round_trips(&summary),
            format!("{third}, {}", text(50_002.0, "RTT"))
        );
        summary.cells.clear();
        assert_eq!(round_trips(&summary), NONE);
    }

    #[test]
    fn tables_are_tables() {
        let text = page(TARGETS);
        let mut width = None;
        for line in text.lines() {
            let bars = line.matches('|').count();
            if line.starts_with('|') {
                assert!(line.ends_with('|'), "{line}");
                assert_eq!(*width.get_or_insert(bars), bars, "{line}");
            } else {
                width = None;
            }
        }
        assert!(text.contains("Example CPU"));
    }
}
