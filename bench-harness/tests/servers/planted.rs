//! Locks that are broken on purpose, one for each property. The checker catches each by the
//! property that it breaks, and by no others, except those that depend on it.

use crate::common;
use std::collections::{BTreeMap, BTreeSet};

use bench_harness::failover::model;
use locktopus_history::Property;

use Property::{
    DuplicateTokens, ExtensionAfterEnd, FairOrder, FallingTokens, GoodWrites, Leftovers,
    LossSignal, LostUpdates, Outage, PermitUse, PermitValidity, StaleWrites, UseAfterEnd,
    UseOverlap, ValidityOverlap, WellFormed,
};

/// Each lock with the properties that it violates: its own, and those that depend on it.
const PLANTED: &[(&str, &[Property])] = &[
    ("broken-history", &[WellFormed]),
    // Believed and used at once: two properties.
    ("broken-readers", &[ValidityOverlap, UseOverlap]),
    ("broken-permits", &[PermitValidity, PermitUse]),
    ("broken-twins", &[DuplicateTokens]),
    // The resource has seen a larger token.
    ("broken-descent", &[FallingTokens, GoodWrites]),
    // A stale write overwrites the update of a later holder.
    ("broken-gate", &[StaleWrites, LostUpdates]),
    ("broken-door", &[GoodWrites]),
    ("broken-store", &[LostUpdates]),
    // A holder that does not hear of the end is inside beside the next one.
    ("broken-silence", &[UseOverlap, UseAfterEnd, LossSignal]),
    ("broken-signal", &[UseOverlap, UseAfterEnd, LossSignal]),
    ("broken-revival", &[ExtensionAfterEnd]),
    ("broken-wake-up", &[Outage]),
    ("broken-order", &[FairOrder]),
    ("broken-clean-up", &[Leftovers]),
];

#[test]
fn each_property_is_violated_by_somebody() {
    let violated: BTreeSet<_> = PLANTED.iter().flat_map(|(_, by)| *by).collect();
    let all: BTreeSet<_> = Property::ALL.iter().collect();
    assert_eq!(violated, all);
}

#[test]
fn each_planted_fault_is_caught_by_what_it_breaks_and_by_nothing_else() {
    let plan = format!("{}/failover/broken.toml", env!("CARGO_MANIFEST_DIR"));
    let out = common::directory("planted");
    let subjects: Vec<_> = PLANTED.iter().map(|(subject, _)| *subject).collect();
    let mut planted = common::bench(&["failover", "--file", &plan, "--subject"]);
    let output = common::ran(planted.arg(subjects.join(",")).arg("--out").arg(&out));
    let told = common::told(&output);
    let report =
        model::read(&out.join("report.json")).unwrap_or_else(|error| panic!("{error}\n{told}"));
    let caught: BTreeMap<_, BTreeSet<String>> = report
        .cells
        .iter()
        .map(|cell| {
            (
                cell.subject.name(),
                names(cell.caught.iter().map(String::as_str)),
            )
        })
        .collect();
    let mut wrong = Vec::new();
    for (subject, by) in PLANTED {
        let expected: Vec<_> = by.iter().map(ToString::to_string).collect();
        let expected = names(expected.iter().map(String::as_str));
        if caught.get(subject) != Some(&expected) {
            wrong.push(format!(
                "{subject}: {expected:?}, caught by {:?}",
                caught.get(subject)
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}\n{told}");
    // Being caught is a success for these locks.
    assert!(output.status.success(), "{told}");
}

/// Without the counts.
fn names<'a>(caught: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    caught
        .filter_map(|by| by.split(':').next())
        .map(str::to_owned)
        .collect()
}
