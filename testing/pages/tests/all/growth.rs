//! What may grow is `#[non_exhaustive]`; what is not is named in `exhaustive.txt`, with the reason (docs/adr/0039).
//!
//! Read from the kept texts of the public API, which `public_api` holds against the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use locktopus_book::Repository;

const KEPT: &str = "testing/pages/public_api";
const LIST: &str = "testing/pages/exhaustive.txt";

/// The reasons that there are.
const REASONS: [&str; 4] = ["complete", "answer", "written", "between"];

/// The types of a crate's text that other crates may match, or write as literals, to the last case and field.
fn exhaustive(surface: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut lines = surface.lines().peekable();
    while let Some(head) = lines.next() {
        let mut hides = false;
        while let Some(part) = lines.peek().and_then(|line| line.strip_prefix("    ")) {
            hides |= part == "..";
            lines.next();
        }
        let named = |sort: &str| {
            let (marks, name) = head.split_once(sort)?;
            let whole = marks.is_empty() || marks.ends_with("] ");
            (whole && !marks.contains("non_exhaustive")).then_some(name)
        };
        let of_enum = named("pub enum ");
        let of_struct = named("pub struct ").filter(|_| !hides);
        if let Some(name) = of_enum.or(of_struct) {
            let end = name.find([' ', '<']).unwrap_or(name.len());
            found.insert(name[..end].to_owned());
        }
    }
    found
}

/// The names of the list, each with its reason.
fn listed(list: &str) -> Result<BTreeMap<String, String>, String> {
    let mut found = BTreeMap::new();
    let mut reason = None;
    for line in list.lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            let name = name.trim_end_matches(']');
            if !REASONS.contains(&name) {
                return Err(format!("{name:?} is no reason: {REASONS:?}"));
            }
            reason = Some(name.to_owned());
            continue;
        }
        let reason = reason
            .clone()
            .ok_or_else(|| format!("{line} has no reason"))?;
        if let Some(other) = found.insert(line.to_owned(), reason) {
            return Err(format!("{line} stands there twice, once under {other:?}"));
        }
    }
    Ok(found)
}

/// What is wrong, in words.
fn problems(exhaustive: &BTreeSet<String>, listed: &BTreeMap<String, String>) -> Vec<String> {
    let unlisted = exhaustive
        .iter()
        .filter(|name| !listed.contains_key(*name))
        .map(|name| {
            format!("{name}: may it grow? Then #[non_exhaustive]; else a reason in {LIST}")
        });
    let gone = listed
        .keys()
        .filter(|name| !exhaustive.contains(*name))
        .map(|name| format!("{name} in {LIST} is #[non_exhaustive], hides a field, or is gone"));
    unlisted.chain(gone).collect()
}

#[test]
fn what_may_grow_says_so() {
    let repository = Repository::this();
    let read = |path: &Path| repository.read(path).expect("a kept text");
    let texts = fs::read_dir(repository.root().join(KEPT)).expect("the texts");
    let mut found = BTreeSet::new();
    for text in texts {
        let name = text.expect("a text").file_name();
        found.extend(exhaustive(&read(&Path::new(KEPT).join(name))));
    }
    // Some of each sort, so that a reader that finds nothing does not pass.
    for name in ["locktopus_core::Executed", "locktopus_history::Grant"] {
        assert!(found.contains(name), "{name}");
    }
    for name in ["locktopus_core::LockError", "locktopus_core::LockGuard"] {
        assert!(!found.contains(name), "{name}");
    }
    let listed = listed(&read(Path::new(LIST))).expect("a list");
    let problems = problems(&found, &listed);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_type_without_a_word_is_noticed() {
    let surface = "pub enum a::Open\n    One\n\
        #[non_exhaustive] pub enum a::Growing\n    One\n\
        #[cfg(feature = \"x\")] pub struct a::Literal<T>\n    0: T\n    derive Debug\n\
        pub struct a::Hidden\n    one: u8\n    ..\n\
        pub fn a::of() -> u8\n\
        pub use a::Other from b::Other\n";
    let found = exhaustive(surface);
    assert_eq!(found, ["a::Literal", "a::Open"].map(str::to_owned).into());

    let list = listed("# why\n[complete]\na::Open\n\n[answer]\na::Gone\n").expect("a list");
    let problems = problems(&found, &list);
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].starts_with("a::Literal: may it grow?"));
    assert!(problems[1].starts_with("a::Gone in "));

    for wrong in [
        "a::Open\n",
        "[because]\na::Open\n",
        "[answer]\na::Open\na::Open\n",
    ] {
        assert!(listed(wrong).is_err(), "{wrong:?}");
    }
}
