//! The page that says what users may expect, and which targets are met.

use std::collections::BTreeMap;

use askama::Template;

use super::row::{Row, one};
use super::{Judged, Line, Outcome, Targets, judge};
use crate::measure::derive::{Spread, Unit};
use crate::measure::opening::{HEADLINE_COLUMNS, HEADLINE_NOTE, Headline, headlines};
use crate::measure::report::format::{self, NONE};
use crate::measure::summary::Summary;

/// The values for the template. Markdown is not escaped: all of it comes from this repository and
/// from names that the harness makes itself.
#[derive(Template)]
#[template(path = "performance.md", escape = "none")]
struct Page<'a> {
    summary: &'a Summary,
    facts: Vec<(&'static str, String)>,
    headlines: Vec<Headline>,
    sections: Vec<Section<'a>>,
    overlaps: u64,
    checked: usize,
    errors: u64,
}

/// One target.
struct Section<'a> {
    judged: Judged<'a>,
    rows: Vec<Worst>,
}

/// The worst case of one check.
struct Worst {
    row: Row,
    /// How many cases keep the bound, out of how many; empty for a single case or without a bound.
    kept: String,
}

/// The page for a summary.
///
/// # Errors
///
/// Any error of the template engine; writing to memory does not fail.
pub fn render(targets: &Targets, summary: &Summary) -> Result<String, askama::Error> {
    let sections = judge(targets, summary).into_iter().map(|judged| Section {
        rows: judged
            .lines
            .chunk_by(|a, b| a.check.asks_the_same(b.check))
            .filter_map(Worst::of)
            .collect(),
        judged,
    });
    let page = Page {
        summary,
        headlines: headlines(&summary.cells),
        facts: facts(summary),
        sections: sections.collect(),
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
}

impl Worst {
    /// The worst of the cases of one check.
    fn of(lines: &[Line<'_>]) -> Option<Self> {
        let least_is_worst = lines.first()?.check.at_least.is_some();
        // A missing figure is the worst of all.
        let badness = |line: &Line<'_>| match line.value {
            None => f64::INFINITY,
            Some(value) if least_is_worst => -value.median,
            Some(value) => value.median,
        };
        let worst = lines
            .iter()
            .max_by(|a, b| badness(a).total_cmp(&badness(b)))?;
        let met = lines
            .iter()
            .filter(|line| line.outcome == Outcome::Met)
            .count();
        let kept = match (worst.outcome, lines.len()) {
            (_, 1) => String::new(),
            (Outcome::Reported, all) => format!(", the largest of {all}"),
            (_, all) => format!(", kept by {met} of {all}"),
        };
        Some(Self {
            row: Row::of(worst),
            kept,
        })
    }
}

/// A figure of the opening table.
fn figure(spread: Option<&Spread>, unit: Unit) -> String {
    let Some(spread) = spread else {
        return NONE.to_owned();
    };
    match unit {
        Unit::Nanos => format::natural(spread.median),
        Unit::Rtt | Unit::PerSecond | Unit::Plain => format::number(spread.median),
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
            format!(
                "{}, {} cores; {}, {} ({})",
                env.cpu_model, env.logical_cores, env.os, env.kernel, env.arch
            ),
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

/// The PING time of each round: the median over the cells that have all rounds and no slow line. It
/// shows whether the machine stayed the same.
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::measure::opening::picture;
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
    fn the_worst_case_of_each_check_is_told() {
        let text = page(TARGETS);
        assert!(text.contains("**not met**"), "{text}");
        assert!(
            text.contains("≤ 1.00 µs") && text.contains("≥ 1.00 ×"),
            "{text}"
        );
        assert!(text.contains("rslock"), "{text}");
        assert!(!text.contains("kept by"), "{text}");
        let several = TARGETS.replace(
            ", workers = 32 }\nat_most",
            " }\neach.workers = [2, 32]\nat_most",
        );
        let text = page(&several);
        assert!(text.contains(", kept by 0 of 2"), "{text}");
        let easier = TARGETS.replace("\"1us\"", "\"1s\"");
        assert!(!page(&easier).contains("**not met**"), "{text}");
    }

    /// A machine that becomes slower shows, even if single workloads do not.
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
        // A cell with fewer rounds would count in one of them only.
        summary.cells[1].rounds = vec![0];
        let text = |ns| format::natural(ns);
        let third = text(40_002.0);
        assert_eq!(
            round_trips(&summary),
            format!("{third}, {}", text(50_002.0))
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

    /// `docs/performance.md` is generated: it must match the committed summary and targets.
    #[test]
    fn the_committed_page_is_the_one_its_summary_gives() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        let summary = Summary::load(&docs.join("performance.json")).unwrap();
        let targets = Targets::committed().unwrap();
        let expected = render(&targets, &summary).unwrap();
        let found = std::fs::read_to_string(docs.join("performance.md")).unwrap();
        assert!(
            found == expected,
            "docs/performance.md is stale: run `locktopus-bench targets --render docs`, or undo the change \
             that was made by hand"
        );
        for goal in judge(&targets, &summary) {
            assert!(
                goal.outcome() != Outcome::NotMet || goal.target.explanation().is_some(),
                "{} is not met, and targets.toml says not what stands in the way and what was tried",
                goal.target.id
            );
        }
        let drawn = std::fs::read_to_string(docs.join("images/performance.svg")).ok();
        assert!(
            drawn == picture(&headlines(&summary.cells)),
            "the picture of the page is stale"
        );
        assert!(
            summary
                .cells
                .iter()
                .all(|cell| cell.overlaps.unwrap_or(0) == 0),
            "the committed run saw two holders of one lock"
        );
    }
}
