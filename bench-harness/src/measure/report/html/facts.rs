//! The cards at the top of the page and the tables of circumstances at its end.

use std::collections::BTreeSet;

use crate::measure::derive::{self, Spread};
use crate::measure::model::Report;
use crate::measure::opening;
use crate::measure::report::format;

/// The words of the page, before it uses them.
const WORDS: [(&str, &str); 10] = [
    (
        "Cell, round",
        "One combination of lock, library, servers and load, and one repetition of it. Figures are medians over the rounds; \
         the small print is the smallest and the largest round.",
    ),
    (
        "W, P",
        "Workers that want locks, and the processes that they are spread over.",
    ),
    (
        "p50, p99, p99.9",
        "Half, 99 of 100, or 999 of 1,000 operations took at most this long.",
    ),
    (
        "RTT",
        "The median round trip of a PING, by the same client in the same round. Multiples of it carry over to other machines; \
         absolute times do not.",
    ),
    (
        "Fairness (Jain)",
        "1 if all workers got the lock equally often, 1 / W if one worker got it every time. Max / min: the most grants of a \
         worker divided by the fewest.",
    ),
    (
        "Overlaps",
        "Holds that began while another holder still had the lock. Any number except 0 is a bug in that lock.",
    ),
    (
        "Commands",
        "What clients send to the server. With scripts: also what scripts call there.",
    ),
    (
        "turns 1",
        "Tasks of one process do not pass the lock to each other: each hand-off goes through the server.",
    ),
    (
        "Through a proxy",
        "Another process stands between client and server and adds to every latency, so these cells are shown apart.",
    ),
    (
        "bare",
        "The bare hand-off, the floor for comparison: no lease, no token, no check that a waiter is alive.",
    ),
];

/// One figure in large print.
pub(super) struct Card {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) detail: String,
    /// `good`, `bad` or empty.
    pub(super) tone: &'static str,
}

/// One line of a table of circumstances.
pub(super) struct Fact {
    pub(super) name: &'static str,
    pub(super) value: String,
}

/// The first questions of a reader: is it safe, what is the yardstick, did anything fail.
pub(super) fn cards(report: &Report) -> Vec<Card> {
    let measured = report
        .cells
        .iter()
        .map(|cell| cell.rounds.len())
        .sum::<usize>();
    let cells = Card {
        name: "Measured",
        value: plural(report.cells.len(), "cell"),
        detail: format!("{} in all", plural(measured, "round")),
        tone: "",
    };
    vec![overlaps(report), yardstick(report), errors(report), cells]
}

fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn overlaps(report: &Report) -> Card {
    let checks: Vec<_> = report.cells.iter().filter_map(derive::overlaps).collect();
    let (checked, found) = checks
        .iter()
        .fold((0, 0), |(c, f), check| (c + check.checked, f + check.found));
    let (value, detail, tone) = if checks.is_empty() {
        (
            "not checked".to_owned(),
            "no holds were recorded".to_owned(),
            "",
        )
    } else {
        let tone = if found == 0 { "good" } else { "bad" };
        (
            format::count(found),
            format!("in {} holds", format::count(checked)),
            tone,
        )
    };
    Card {
        name: "Overlapping holds",
        value,
        detail,
        tone,
    }
}

fn yardstick(report: &Report) -> Card {
    let xs = report
        .cells
        .iter()
        .filter_map(derive::rtt)
        .flat_map(|x| [x.min, x.median, x.max]);
    let (value, detail) = Spread::of(xs).map_or_else(
        || ("none".to_owned(), "no server, so no PING".to_owned()),
        |x| {
            let range = format!(
                "{} to {} µs over all rounds",
                format::micros(x.min),
                format::micros(x.max)
            );
            (format!("{} µs", format::micros(x.median)), range)
        },
    );
    Card {
        name: "RTT, one round trip of PING",
        value,
        detail,
        tone: "",
    }
}

fn errors(report: &Report) -> Card {
    let mut kinds = BTreeSet::new();
    let mut total = 0;
    for (kind, count) in report.cells.iter().flat_map(derive::errors) {
        kinds.insert(kind);
        total += count;
    }
    let detail = if kinds.is_empty() {
        "in all rounds".to_owned()
    } else {
        kinds.into_iter().collect::<Vec<_>>().join(", ")
    };
    Card {
        name: "Failed operations",
        value: format::count(total),
        detail,
        tone: "",
    }
}

/// The words that the page uses.
pub(super) fn words(report: &Report) -> Vec<Fact> {
    let all = WORDS
        .into_iter()
        .chain(opening::reference(report).map(|text| ("R1", text)));
    all.map(|(name, text)| fact(name, text)).collect()
}

/// Everything needed to judge and to repeat the run.
pub(super) fn facts(report: &Report) -> Vec<(&'static str, Vec<Fact>)> {
    vec![
        ("Run", run(report)),
        ("Machine", machine(report)),
        ("Servers", servers(report)),
    ]
}

fn fact(name: &'static str, value: impl Into<String>) -> Fact {
    Fact {
        name,
        value: value.into(),
    }
}

fn run(report: &Report) -> Vec<Fact> {
    let (run, harness) = (&report.run, &report.harness);
    vec![
        fact("Run", &run.id),
        fact("Started", &run.started_at),
        fact("Scenario", &run.scenario),
        fact("Rounds", run.rounds.to_string()),
        fact("Seed", run.seed.to_string()),
        fact("Arguments", run.command_line.join(" ")),
        fact("Harness", &harness.version),
        fact(
            "Source",
            harness.git_describe.as_deref().unwrap_or("unknown"),
        ),
        fact("Compiler", &harness.rust_version),
        fact("Build profile", &harness.build_profile),
        fact("Schema version", report.schema_version.to_string()),
    ]
}

fn machine(report: &Report) -> Vec<Fact> {
    let env = &report.environment;
    let load = env.load_average_at_start.map_or_else(
        || "unknown".to_owned(),
        |[one, five, fifteen]| format!("{one:.2}, {five:.2}, {fifteen:.2}"),
    );
    vec![
        fact("System", &env.os),
        fact("Kernel", format!("{} ({})", env.kernel, env.arch)),
        fact("Processor", &env.cpu_model),
        fact("Logical cores", env.logical_cores.to_string()),
        fact("Memory", format::bytes(env.memory_bytes)),
        fact("Load at start", load),
        fact("Pinning", env.pinning.describe()),
        fact(
            "Container engine",
            env.container_engine.as_deref().unwrap_or("none"),
        ),
    ]
}

fn servers(report: &Report) -> Vec<Fact> {
    let subjects = || report.cells.iter().map(|cell| &cell.subject);
    let list = |values: BTreeSet<String>| {
        if values.is_empty() {
            "none".to_owned()
        } else {
            values.into_iter().collect::<Vec<_>>().join(", ")
        }
    };
    let server = |s: &crate::measure::model::Subject| {
        s.server
            .as_ref()
            .map(|server| format!("{} {}", server.flavour, server.version))
    };
    vec![
        fact("Server", list(subjects().filter_map(server).collect())),
        fact(
            "Provider",
            list(subjects().map(|s| s.provider.name().to_owned()).collect()),
        ),
        fact(
            "Topologies",
            list(subjects().map(|s| s.topology.name().to_owned()).collect()),
        ),
        fact(
            "Clients",
            list(subjects().map(|s| s.client.clone()).collect()),
        ),
        fact(
            "Strategies",
            list(subjects().map(|s| s.strategy.clone()).collect()),
        ),
    ]
}
