//! The page that says what users may expect, and the page that says which targets are met.

use std::collections::BTreeMap;

use askama::Template;

use super::row::{Row, one};
use super::{Judged, Line, Outcome, Targets, judge};
use crate::measure::derive::{Spread, Unit};
use crate::measure::opening::{HEADLINE_COLUMNS, HEADLINE_NOTE, Headline, headlines};
use crate::measure::report::format::{self, NONE};
use crate::measure::summary::Summary;

/// The pages, by their file names.
pub type Pages = [(&'static str, String); 2];

/// The page for users. Markdown is not escaped: all of it comes from this repository and from
/// names that the harness makes itself.
#[derive(Template)]
#[template(path = "performance.md", escape = "none")]
struct Expected<'a> {
    summary: &'a Summary,
    facts: Vec<(&'static str, String)>,
    headlines: Vec<Headline>,
    rows: Vec<Worst>,
    overlaps: u64,
    checked: usize,
    errors: u64,
}

/// How each goal came out, for contributors.
#[derive(Template)]
#[template(path = "performance-goals.md", escape = "none")]
struct Goals<'a> {
    sections: Vec<Section<'a>>,
}

/// One target.
struct Section<'a> {
    judged: Judged<'a>,
    rows: Vec<Worst>,
}

/// The worst case of one check.
#[derive(Clone)]
struct Worst {
    /// Its words for users.
    expect: Option<String>,
    row: Row,
    /// How many cases keep the bound, out of how many; empty for a single case or without a bound.
    kept: String,
    cases: usize,
}

/// The pages for a summary.
///
/// # Errors
///
/// Any error of the template engine; writing to memory does not fail.
pub fn render(targets: &Targets, summary: &Summary) -> Result<Pages, askama::Error> {
    let sections = judge(targets, summary).into_iter().map(|judged| Section {
        rows: judged
            .lines
            .chunk_by(|a, b| a.check.asks_the_same(b.check))
            .filter_map(Worst::of)
            .collect(),
        judged,
    });
    let goals = Goals {
        sections: sections.collect(),
    };
    let rows = goals.sections.iter().flat_map(|section| &section.rows);
    let expected = Expected {
        summary,
        headlines: headlines(&summary.cells),
        facts: facts(summary),
        rows: rows.filter(|row| row.expect.is_some()).cloned().collect(),
        overlaps: summary.cells.iter().filter_map(|cell| cell.overlaps).sum(),
        checked: summary
            .cells
            .iter()
            .filter(|cell| cell.overlaps.is_some())
            .count(),
        errors: summary.cells.iter().map(|cell| cell.errors).sum(),
    };
    Ok([
        ("performance.md", expected.render()?),
        ("performance-goals.md", goals.render()?),
    ])
}

impl Section<'_> {
    fn outcome(&self) -> &'static str {
        self.judged.outcome().name()
    }

    /// The reason and the attempts, for a goal that is not met.
    fn obstacle(&self) -> Option<(&str, &str)> {
        let missed = self.judged.outcome() == Outcome::NotMet;
        self.judged.target.explanation().filter(|_| missed)
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
            expect: worst.check.expect.clone(),
            row: Row::of(worst),
            kept,
            cases: lines.len(),
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
    let run = &summary.run;
    vec![
        (
            "Measured",
            format!("{} ({} rounds)", run.started_at, run.rounds),
        ),
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
    let mut rounds: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for cell in &summary.cells {
        if Some(cell.rounds.len()) == most && !cell.subject.through_proxy {
            for (round, took) in cell.by_round("RTT") {
                rounds.entry(round).or_default().push(took);
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

    fn pages(targets: &str) -> [String; 2] {
        let summary = Summary::of(synthetic::shared());
        let pages = render(&Targets::parse(targets).unwrap(), &summary).unwrap();
        pages.map(|(_, page)| page)
    }

    fn goals(targets: &str) -> String {
        let [_, goals] = pages(targets);
        goals
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
expect = "How fast it is"
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
        let text = goals(TARGETS);
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
        let text = goals(&several);
        assert!(text.contains(", kept by 0 of 2"), "{text}");
        let easier = TARGETS.replace("\"1us\"", "\"1s\"");
        assert!(!goals(&easier).contains("**not met**"), "{text}");
    }

    /// The page for users has figures and no goals. The other one says why a goal is not met.
    #[test]
    fn users_see_figures_and_contributors_goals() {
        let [users, goals] = pages(TARGETS);
        assert!(users.contains("| How fast it is |"), "{users}");
        assert!(
            !users.contains("not met") && !users.contains("1.00 ×"),
            "{users}"
        );
        assert!(
            goals.contains("light is fast") && goals.contains("glass: 2 µs"),
            "{goals}"
        );
        let met = self::goals(
            &TARGETS
                .replace("\"1us\"", "\"1s\"")
                .replace("= 1\n", "= 0\n"),
        );
        assert!(!met.contains("light is fast"), "{met}");
    }

    #[test]
    fn tables_are_tables() {
        let [text, _] = pages(TARGETS);
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

    /// The pages are generated: they must match the committed summary and targets.
    #[test]
    fn the_committed_pages_are_those_their_summary_gives() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        let summary = Summary::load(&docs.join("performance.json")).unwrap();
        let targets = Targets::committed().unwrap();
        for (name, expected) in render(&targets, &summary).unwrap() {
            let found = std::fs::read_to_string(docs.join(name)).unwrap();
            assert!(
                found == expected,
                "docs/{name} is stale: run `locktopus-bench targets --render docs`, or undo the change \
                 that was made by hand"
            );
        }
        for goal in judge(&targets, &summary) {
            assert!(goal.outcome() != Outcome::NotMeasured, "{}", goal.target.id);
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
