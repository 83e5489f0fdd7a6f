//! The cards at the top of the page and the tables of circumstances at its end.

use std::collections::BTreeSet;

use crate::measure::derive::{self, Spread};
use crate::measure::model::{Report, Subject};
use crate::measure::report::format;

/// One figure in large print.
pub(super) struct Card {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) detail: String,
    /// `good`, `bad` or empty.
    pub(super) tone: &'static str,
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

/// The servers, and what was measured on them.
pub(super) fn servers(report: &Report) -> Vec<(&'static str, String)> {
    let subjects = || report.cells.iter().map(|cell| &cell.subject);
    let list = |values: BTreeSet<String>| {
        if values.is_empty() {
            "none".to_owned()
        } else {
            values.into_iter().collect::<Vec<_>>().join(", ")
        }
    };
    let server = |s: &Subject| {
        s.server
            .as_ref()
            .map(|server| format!("{} {}", server.flavour, server.version))
    };
    let named = |of: &dyn Fn(&Subject) -> String| list(subjects().map(of).collect());
    vec![
        ("Server", list(subjects().filter_map(server).collect())),
        ("Provider", named(&|s| s.provider.name().to_owned())),
        ("Topologies", named(&|s| s.topology.name().to_owned())),
        ("Clients", named(&|s| s.client.clone())),
        ("Strategies", named(&|s| s.strategy.clone())),
    ]
}

/// The load averages when the run began.
pub(super) fn load(report: &Report) -> String {
    let load = report.environment.load_average_at_start;
    let load = load.map(|all| all.map(|of| format!("{of:.2}")).join(", "));
    load.unwrap_or_else(|| "unknown".to_owned())
}
