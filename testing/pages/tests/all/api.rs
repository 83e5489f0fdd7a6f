//! The documentation of each item has an example, its errors, and the effect of dropping its
//! future.
//!
//! `src/api.rs` has the rules. There is no list of exceptions.

use std::fs;

use locktopus_pages::Repository;
use locktopus_pages::api::{lacks, public_items};

/// The crates that users of locks call, and the crates that are public through them.
const PRODUCT: [&str; 12] = [
    "locktopus",
    "locktopus-contract",
    "locktopus-core",
    "locktopus-fence",
    "locktopus-fred",
    "locktopus-layers",
    "locktopus-memory",
    "locktopus-protocol",
    "locktopus-quorum",
    "locktopus-recipes",
    "locktopus-redis",
    "locktopus-tower",
];

/// The other published crates: only the units of times are checked.
const FURTHER: [&str; 2] = ["locktopus-conformance", "locktopus-history"];

/// Of the crate that clients are built on, users of locks see only what the facade names.
const BETWEEN: &str = "locktopus_protocol::";

#[test]
fn every_public_item_is_explained() {
    let root = Repository::this().root().to_owned();
    let items = public_items(&root, &[&PRODUCT[..], &FURTHER[..]].concat()).expect("the sources");
    // Some of each sort must be found, so that a broken reader cannot pass.
    for name in [
        "locktopus::connect",
        "locktopus::LockRequest::acquire",
        "locktopus_contract::LockBackend::attempt",
        "locktopus_core::LockGuard::release",
        "locktopus_history::WorkerLog::stalled",
        "locktopus_layers::Retry",
        "locktopus_protocol::key_slot",
        "locktopus_tower::LockLayer::new",
    ] {
        assert!(items.iter().any(|item| item.name == name), "{name}");
    }
    let named: String = ["lib.rs", "url.rs"]
        .map(|file| fs::read_to_string(root.join("crates/locktopus/src").join(file)))
        .map(|text| text.expect("the facade"))
        .concat();
    let named: Vec<_> = named
        .split("pub use locktopus_protocol::")
        .skip(1)
        .flat_map(|rest| rest.split(';').take(1))
        .flat_map(|names| names.split(|c: char| !c.is_alphanumeric() && c != '_'))
        .collect();
    let further = FURTHER.map(|name| name.replace('-', "_") + "::");
    let found: Vec<String> = lacks(&items)
        .iter()
        .filter(|(item, lack)| {
            let base = |name: &str| name.split("::").next().unwrap_or_default().to_owned();
            let hidden = item.name.strip_prefix(BETWEEN);
            let hidden = hidden.is_some_and(|name| !named.contains(&base(name).as_str()));
            let seen = !hidden && further.iter().all(|start| !item.name.starts_with(start));
            seen || *lack == "unit"
        })
        .map(|(item, lack)| {
            let times = item.without_unit.join(", ");
            format!("{lack} {} ({}) {times}", item.name, item.file.display())
        })
        .collect();
    assert!(found.is_empty(), "not documented:\n{}", found.join("\n"));
}
