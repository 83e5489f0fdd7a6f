//! The public API of every published crate, kept as a text, so that a review sees each change of it.
//!
//! After a change that is meant, `LOCKTOPUS_PUBLIC_API=accept cargo test --package locktopus-book public_api` writes the
//! texts anew; they belong to the change, and a line in CHANGELOG.md as well.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use locktopus_book::Repository;
use locktopus_book::api::{Sources, surface};

const KEPT: &str = "testing/pages/public_api";

/// A program: what it offers is in docs/command-line.md.
const WITHOUT_LIBRARY: &str = "locktopus-cli";

/// The crates that may be published.
fn published(repository: &Repository) -> Vec<String> {
    let mut manifests = Vec::new();
    for among in ["crates", "testing"] {
        for folder in fs::read_dir(repository.root().join(among)).expect("the crates") {
            let manifest = folder.expect("a folder").path().join("Cargo.toml");
            manifests.extend(fs::read_to_string(manifest));
        }
    }
    let mut names: Vec<String> = manifests
        .iter()
        .filter(|manifest| !manifest.lines().any(|line| line == "publish = false"))
        .filter_map(|manifest| {
            manifest
                .lines()
                .find_map(|line| line.strip_prefix("name = \""))
        })
        .map(|name| name.trim_end_matches('"').to_owned())
        .filter(|name| name != WITHOUT_LIBRARY)
        .collect();
    names.sort();
    names
}

/// Lines with the definition that each belongs to.
fn whole(text: &str) -> BTreeSet<String> {
    let mut head = "";
    text.lines()
        .map(|line| {
            let part = line.strip_prefix("    ");
            head = if part.is_some() { head } else { line };
            part.map_or_else(|| line.to_owned(), |part| format!("{part}  in  {head}"))
        })
        .collect()
}

#[test]
fn the_public_api_is_the_one_that_was_reviewed() {
    let repository = Repository::this();
    let accept = std::env::var("LOCKTOPUS_PUBLIC_API").is_ok_and(|wish| wish == "accept");
    let mut changes = Vec::new();
    let crates = published(&repository);
    assert!(crates.len() >= 12, "only {crates:?}");
    for name in &crates {
        let sources = Sources::read(repository.root(), &[name]).expect("the sources");
        let now = surface(&sources, name);
        assert!(!now.is_empty(), "{name} has no public API");
        let file = Path::new(KEPT).join(format!("{name}.txt"));
        if accept {
            fs::write(repository.root().join(&file), &now).expect("a text");
            continue;
        }
        let kept = repository.read(&file).unwrap_or_default();
        if now != kept {
            let (now, kept) = (whole(&now), whole(&kept));
            changes.extend(
                kept.difference(&now)
                    .map(|line| format!("- {name}: {line}")),
            );
            changes.extend(
                now.difference(&kept)
                    .map(|line| format!("+ {name}: {line}")),
            );
            changes.push(format!("{name} differs"));
        }
    }
    let kept = fs::read_dir(repository.root().join(KEPT)).expect("the texts");
    assert_eq!(
        kept.count(),
        crates.len(),
        "texts of other crates in {KEPT}"
    );
    assert!(
        changes.is_empty(),
        "the public API changed. If that is meant: LOCKTOPUS_PUBLIC_API=accept cargo test --workspace --all-features --test \
         public_api\n{}",
        changes.join("\n")
    );
}
