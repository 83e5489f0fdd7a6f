//! The documentation of each item has an example, its errors, and the effect of dropping its
//! future.
//!
//! `src/api/rules.rs` has the rules. There is no list of exceptions.

use locktopus_pages::Repository;
use locktopus_pages::api::{Lack, Sources, lacks, public_items};

/// The crates that users of locks call.
const ROOTS: [&str; 5] = [
    "locktopus",
    "locktopus-fred",
    "locktopus-layers",
    "locktopus-redis",
    "locktopus-tower",
];

/// Crates that are public through those.
const BEHIND: [&str; 7] = [
    "locktopus-contract",
    "locktopus-core",
    "locktopus-fence",
    "locktopus-memory",
    "locktopus-protocol",
    "locktopus-quorum",
    "locktopus-recipes",
];

/// The other published crates: only the units of times are checked.
const FURTHER: [&str; 2] = ["locktopus-conformance", "locktopus-history"];

#[test]
fn times_have_units_in_every_crate() {
    let repository = Repository::this();
    let crates = [&ROOTS[..], &BEHIND[..], &FURTHER[..]].concat();
    let sources = Sources::read(repository.root(), &crates).expect("the sources");
    let items = public_items(&sources, &crates);
    let log = "locktopus_history::WorkerLog::stalled";
    assert!(items.iter().any(|item| item.name == log), "{log}");
    let without: Vec<String> = lacks(&items)
        .iter()
        .filter(|(_, lack)| *lack == Lack::Unit)
        .map(|(item, _)| format!("{}: {}", item.name, item.without_unit.join(", ")))
        .collect();
    assert!(
        without.is_empty(),
        "times without a unit:\n{}",
        without.join("\n")
    );
}

#[test]
fn every_public_item_is_explained() {
    let repository = Repository::this();
    let sources = Sources::read(repository.root(), &[&ROOTS[..], &BEHIND[..]].concat())
        .expect("the sources of this repository");
    let items = public_items(&sources, &ROOTS);
    let found: Vec<String> = lacks(&items)
        .iter()
        .map(|(item, lack)| format!("{lack} {} ({})", item.name, item.file.display()))
        .collect();
    let own = items
        .iter()
        .filter(|item| !item.examples.is_empty())
        .count();
    println!(
        "{} public items, {own} with examples of their own",
        items.len()
    );
    // Some of each sort must be found, so that a broken reader cannot pass.
    for name in [
        "locktopus::connect",
        "locktopus::LockGuard::release",
        "locktopus::LockBackend::attempt",
        "locktopus::Layer",
        "locktopus::client::key_slot",
        "locktopus::blocking::LockRequest::acquire",
        "locktopus_tower::LockLayer::new",
    ] {
        assert!(items.iter().any(|item| item.name == name), "{name}");
    }
    assert!(found.is_empty(), "not documented:\n{}", found.join("\n"));
}
