//! Rules for all pages of the repository.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use locktopus_pages::{Book, REPOSITORY_URL, Repository, TESTED, links};

/// The Markdown files below a folder, relative to the root of the repository, without generated
/// folders and templates.
fn pages(root: &Path, folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(root.join(folder)).expect("a folder of the repository") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().into_string().expect("plain names");
        let path = folder.join(&name);
        if entry.path().is_dir() {
            let made = [
                "target",
                "node_modules",
                "bench-results",
                "failover-results",
                "templates",
            ];
            if !name.starts_with('.') && !made.contains(&name.as_str()) {
                pages(root, &path, found);
            }
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

/// The pages that git tracks; `None` without git or a history. Other files beside them belong to
/// someone else.
fn known_to_git(root: &Path) -> Option<Vec<PathBuf>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--", "*.md"]);
    let listed = git.current_dir(root).output().ok()?;
    let names = String::from_utf8(listed.stdout).ok()?;
    let found = names.split_terminator('\0').map(PathBuf::from);
    // Pages that are deleted but not committed do not count.
    let found = found.filter(|page| root.join(page).is_file());
    let found = found.filter(|page| !page.iter().any(|part| part == "templates"));
    listed.status.success().then(|| found.collect())
}

fn all_pages(repository: &Repository) -> Vec<PathBuf> {
    let found = known_to_git(repository.root()).filter(|found| !found.is_empty());
    let found = found.unwrap_or_else(|| {
        let mut found = Vec::new();
        pages(repository.root(), Path::new(""), &mut found);
        found
    });
    assert!(found.len() > 60, "only {} pages: {found:?}", found.len());
    found
}

#[test]
fn every_link_leads_somewhere() {
    let mut repository = Repository::this();
    let mut dead = Vec::new();
    for page in all_pages(&repository) {
        dead.extend(repository.dead_links(&page));
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
}

/// How many cells a row of a table has. A pipe divides cells in code too, unless it is escaped.
fn cells(row: &str) -> usize {
    row.replace("\\|", "")
        .matches('|')
        .count()
        .saturating_sub(1)
}

/// Rows that would show as text, or lose their last cells.
fn broken_rows(text: &str) -> Vec<&str> {
    let (mut in_code, mut broken) = (false, Vec::new());
    let lines: Vec<&str> = text.lines().collect();
    let mut header: Option<usize> = None;
    for (at, line) in lines.iter().enumerate() {
        in_code ^= line.trim_start().starts_with("```");
        if in_code || !line.starts_with('|') {
            header = None;
            continue;
        }
        let width = *header.get_or_insert_with(|| {
            let below = lines.get(at + 1).copied().unwrap_or_default();
            if below.starts_with("|-") || below.starts_with("|:") {
                cells(line)
            } else {
                0
            }
        });
        if cells(line) != width {
            broken.push(*line);
        }
    }
    broken
}

#[test]
fn tables_are_whole() {
    let good = "| a | b |\n|---|---|\n| `x\\|y` | z |\n\ntext\n```text\n| no table\n```\n";
    assert!(broken_rows(good).is_empty());
    let split = "| a | b |\n|---|---|\n| `x|y` | z |\n";
    assert_eq!(broken_rows(split), ["| `x|y` | z |"]);
    assert_eq!(broken_rows("\n| a | b |\n\n"), ["| a | b |"]);

    let repository = Repository::this();
    let mut broken = Vec::new();
    for page in all_pages(&repository) {
        let text = repository.read(&page).expect("a page");
        let rows = broken_rows(&text);
        broken.extend(rows.iter().map(|row| format!("{}: {row}", page.display())));
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_page_of_the_book_is_in_its_contents() {
    let repository = Repository::this();
    let summary = repository
        .read(Path::new("docs/SUMMARY.md"))
        .expect("a table of contents");
    let named: Vec<PathBuf> = links(&summary)
        .iter()
        .map(|link| Path::new("docs").join(&link.target))
        .collect();
    let missing: Vec<_> = all_pages(&repository)
        .into_iter()
        .filter(|page| page.starts_with("docs") && !page.ends_with("SUMMARY.md"))
        .filter(|page| !named.contains(page))
        .collect();
    assert!(missing.is_empty(), "not in docs/SUMMARY.md: {missing:?}");
}

/// Examples that are never compiled become wrong one day.
#[test]
fn every_chapter_with_rust_is_tested() {
    let repository = Repository::this();
    let mut untested = Vec::new();
    for page in all_pages(&repository) {
        let Ok(chapter) = page.strip_prefix("docs/book") else {
            continue;
        };
        let text = repository.read(&page).expect("a chapter");
        let chapter = chapter.to_str().expect("plain names");
        if text.contains("```rust") && !TESTED.contains(&chapter) {
            untested.push(chapter.to_owned());
        }
    }
    assert!(untested.is_empty(), "not in src/lib.rs: {untested:?}");
}

/// The README quotes a few figures. Each must appear on the page linked beside it, or it is out of
/// date.
#[test]
fn figures_of_the_readme_are_those_of_their_pages() {
    let repository = Repository::this();
    let readme = repository.read(Path::new("README.md")).expect("a README");
    let mut quoted = 0;
    for line in readme.lines().filter(|line| line.starts_with('|')) {
        let linked = links(line);
        let Some(source) = ["docs/performance.md", "docs/safety.md"]
            .into_iter()
            .find(|page| linked.iter().any(|link| link.target.contains(page)))
        else {
            continue;
        };
        let page = repository
            .read(Path::new(source))
            .expect("a page with figures");
        let known: Vec<&str> = figures(&page).collect();
        for figure in figures(line) {
            quoted += 1;
            assert!(known.contains(&figure), "{figure} is not in {source}");
        }
    }
    assert!(quoted >= 5, "only {quoted} figures");
}

/// The numbers in a text, as written.
fn figures(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == ','))
        .map(|word| word.trim_matches(['.', ',']))
        .filter(|word| word.starts_with(|c: char| c.is_ascii_digit()))
}

/// The README of the facade's tarball and of docs.rs is the root README with web addresses, because
/// the rest of the repository is not there. `LOCKTOPUS_README=accept` writes it.
#[test]
fn the_readme_of_the_tarball_is_made_from_this_one() {
    const COPY: &str = "crates/locktopus/README.md";
    let page = Path::new("README.md");
    let mut repository = Repository::this();
    let web = Book {
        // No page is beside it.
        source: "none".into(),
        chapters: BTreeSet::new(),
        repository_url: REPOSITORY_URL.to_owned(),
    };
    let readme = repository.read(page).expect("a README");
    let made = web
        .prepare(&mut repository, page, &readme)
        .expect("links that lead somewhere");
    let relative: Vec<String> = links(&made)
        .into_iter()
        .map(|link| link.target)
        .filter(|target| !target.starts_with("https://"))
        .collect();
    assert!(relative.is_empty(), "lead nowhere: {relative:?}");
    assert!(made.contains("/raw/main/docs/images/"), "no picture");
    if std::env::var("LOCKTOPUS_README").is_ok_and(|wish| wish == "accept") {
        fs::write(repository.root().join(COPY), &made).expect("a README");
    }
    assert!(
        repository.read(Path::new(COPY)).expect("a README") == made,
        "{COPY} is not made from README.md: LOCKTOPUS_README=accept cargo test --package locktopus-pages pages"
    );
    // In the repository itself, links lead to files of the clone.
    let away: Vec<String> = links(&readme)
        .into_iter()
        .map(|link| link.target)
        .filter(|target| target.starts_with(REPOSITORY_URL))
        .collect();
    assert!(away.is_empty(), "not relative: {away:?}");
}
