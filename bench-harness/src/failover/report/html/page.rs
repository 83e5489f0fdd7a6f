//! The values for the template.

use askama::Template;

use super::{rates, timeline};
use crate::failover::completeness;
use crate::failover::model::{self, CellReport, FailoverReport};
use crate::failover::report::columns::{Figure, HEADINGS, Tone, figures};
use crate::failover::report::said;
use crate::failover::report::terminal::{broken_promises, caught, scenarios, servers};
use crate::shared::provenance::Skipped;
use crate::shared::render::format::count;

/// The whole page. Askama escapes every value; only the fields that this crate has made itself
/// (style, script, SVG, escaped JSON) are inserted as they are.
#[derive(Template)]
#[template(path = "failover.html")]
pub(super) struct Page<'a> {
    report: &'a FailoverReport,
    servers: String,
    cards: Vec<Card>,
    problems: Vec<String>,
    /// Why the run does not count.
    missing: Vec<String>,
    caught: Vec<String>,
    not_required: Vec<String>,
    too_few: Vec<String>,
    skipped: &'a [Skipped],
    headings: &'static [&'static str],
    sections: Vec<Section>,
    rates: Option<String>,
    facts: Vec<(&'static str, String)>,
    json: String,
    style: &'static str,
    script: &'static str,
}

/// One figure in large print.
struct Card {
    name: &'static str,
    value: String,
    detail: &'static str,
    tone: &'static str,
}

/// One scenario.
struct Section {
    id: String,
    name: String,
    about: String,
    rows: Vec<Row>,
    timelines: Vec<Drawing>,
}

/// One cell in the matrix.
struct Row {
    topology: &'static str,
    who: String,
    cells: Vec<Shown>,
}

struct Shown {
    text: String,
    class: &'static str,
}

struct Drawing {
    title: String,
    svg: String,
    /// Folded when the page opens: one drawing of each scenario is enough at first.
    folded: bool,
}

impl<'a> Page<'a> {
    pub(super) fn of(report: &'a FailoverReport) -> Self {
        let sections = scenarios(report).into_iter().enumerate();
        let sections = sections
            .map(|(at, (name, about))| section(report, at, name, about))
            .collect();
        Self {
            report,
            servers: servers(&report.cells),
            cards: cards(report),
            problems: broken_promises(&report.cells),
            missing: completeness::missing(report),
            caught: caught(report),
            not_required: said::not_required(report),
            too_few: said::too_few(report),
            skipped: &report.skipped,
            headings: &HEADINGS,
            sections,
            rates: rates::draw(report),
            facts: facts(report),
            json: model::to_json(report)
                .replace('<', "\\u003c")
                .replace('\u{2028}', "\\u2028"),
            style: include_str!("../../../../templates/style.css"),
            script: include_str!("../../../../templates/report.js"),
        }
    }
}

fn section(report: &FailoverReport, at: usize, name: &str, about: &str) -> Section {
    let cells: Vec<_> = report
        .cells
        .iter()
        .filter(|cell| cell.scenario == name)
        .collect();
    Section {
        id: format!("scenario-{at}"),
        name: name.to_owned(),
        about: about.to_owned(),
        rows: cells.iter().map(|cell| row(cell)).collect(),
        timelines: drawings(&cells),
    }
}

fn row(cell: &CellReport) -> Row {
    let shown = |figure: Figure| Shown {
        text: figure.text,
        class: match figure.tone {
            Tone::Plain => "",
            Tone::Good => "good",
            Tone::Bad => "bad",
        },
    };
    Row {
        topology: cell.topology.name(),
        who: cell.who(),
        cells: figures(cell).into_iter().map(shown).collect(),
    }
}

/// A drawing with a double grant comes first.
fn drawings(cells: &[&CellReport]) -> Vec<Drawing> {
    let mut all: Vec<_> = cells
        .iter()
        .filter_map(|cell| Some((cell, cell.timeline.as_ref()?)))
        .collect();
    all.sort_by_key(|(_, timeline)| timeline.grants.iter().all(|grant| !grant.double));
    all.into_iter()
        .enumerate()
        .map(|(at, (cell, timeline))| {
            let title = format!("{}, {}", cell.topology, cell.who());
            Drawing {
                svg: timeline::draw(timeline, &title),
                title,
                folded: at > 0,
            }
        })
        .collect()
}

fn cards(report: &FailoverReport) -> Vec<Card> {
    let sound = || report.cells.iter().filter(|cell| !cell.subject.is_broken());
    let sum = |of: &dyn Fn(&CellReport) -> u64| sound().map(of).sum::<u64>();
    let faults = sum(&|cell| cell.figures.faults);
    let missed = sum(&|cell| cell.figures.writes.missed);
    let caught = sum(&|cell| cell.figures.writes.caught);
    let exclusive = |cell: &CellReport| u64::from(cell.exclusive) * cell.figures.validity.count;
    let overlaps = sum(&exclusive);
    let judge = |value: u64| if value == 0 { "good" } else { "bad" };
    let mut cards = vec![
        Card {
            name: "Faults done",
            value: count(faults),
            detail: "to servers, connections and processes",
            tone: "",
        },
        Card {
            name: "Stale writes missed",
            value: count(missed),
            detail: "by the resource that checks tokens",
            tone: judge(missed),
        },
        Card {
            name: "Stale writes caught",
            value: count(caught),
            detail: "that a lock alone would have let through",
            tone: "",
        },
    ];
    if sound().any(|cell| cell.exclusive) {
        cards.push(Card {
            name: "Overlaps of validity",
            value: count(overlaps),
            detail: "in modes that promise none",
            tone: judge(overlaps),
        });
    }
    cards
}

fn facts(report: &FailoverReport) -> Vec<(&'static str, String)> {
    let (run, env, harness) = (&report.run, &report.environment, &report.harness);
    vec![
        ("Started", run.started_at.clone()),
        ("Arguments", run.command_line.join(" ")),
        ("Seed", run.seed.to_string()),
        ("Servers", servers(&report.cells)),
        ("Processor", env.cpu_model.clone()),
        ("Logical cores", env.logical_cores.to_string()),
        ("System", format!("{}, kernel {}", env.os, env.kernel)),
        (
            "Source",
            harness
                .git_describe
                .clone()
                .unwrap_or_else(|| "unknown".to_owned()),
        ),
        ("Build profile", harness.build_profile.clone()),
    ]
}
