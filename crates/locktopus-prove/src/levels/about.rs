//! Tests of what results are about: also of the tests and scripts that made them.
#![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

use std::path::Path;

use super::*;
use crate::sources::{BUT, is_left_out};

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn is_about(level: &Level, path: &Path) -> bool {
    level.about.iter().any(|about| path.starts_with(about)) && !is_left_out(level.about, path)
}

/// What a level leaves out of a folder is in none of the programs that it runs.
#[test]
fn what_is_left_out_is_not_in_what_a_level_runs() {
    let mut found = 0;
    for but in LEVELS.iter().flat_map(|level| level.about) {
        let Some(out) = but.strip_prefix(BUT) else {
            continue;
        };
        let out = Path::new(out);
        let tests = out
            .ancestors()
            .find(|path| path.ends_with("tests"))
            .unwrap();
        let inside = out
            .strip_prefix(tests)
            .unwrap()
            .to_string_lossy()
            .into_owned();
        let module = format!("mod {};", out.file_stem().unwrap().to_string_lossy());
        for entry in std::fs::read_dir(root().join(tests)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            // These are the comparisons, of which the level of that name is.
            if path.is_dir() || name.starts_with("script_fidelity_") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(
                !text.contains(&inside) && !text.contains(&module),
                "{name}: {inside}"
            );
            found += 1;
        }
        let fidelity = named("fidelity").unwrap();
        assert!(is_about(fidelity, out), "{}", out.display());
    }
    assert!(found > 20, "{found}");
}

/// A test that was changed, or is another one, says nothing of the result that an earlier one had.
#[test]
fn a_result_is_also_about_the_tests_that_made_it() {
    let mut found = 0;
    for level in LEVELS {
        let How::Tests(targets) = level.how else {
            continue;
        };
        for target in targets
            .iter()
            .filter_map(|target| target.strip_prefix("--test="))
        {
            let crates = std::fs::read_dir(root().join("crates")).unwrap();
            let crates = crates.map(|entry| Path::new("crates").join(entry.unwrap().file_name()));
            for package in crates.chain([Path::new("bench-harness").to_owned()]) {
                let tests = package.join("tests");
                let file = tests.join(format!("{target}.rs"));
                let files = [file, tests.join(target).join("main.rs")];
                for file in files.iter().filter(|file| root().join(file).exists()) {
                    found += 1;
                    assert!(is_about(level, file), "{}: {}", level.name, file.display());
                    // And of what it has in common with other tests.
                    let text = std::fs::read_to_string(root().join(file)).unwrap();
                    let shared = tests.join("common");
                    assert!(
                        !text.contains("\nmod common;\n") || is_about(level, &shared),
                        "{}: {}",
                        level.name,
                        shared.display()
                    );
                }
            }
        }
    }
    assert!(found > 15, "{found}");
}

/// What takes a mend back names the files that it changes, and the tests that notice.
#[test]
fn reverts_are_about_all_that_they_change() {
    let reverts = named("reverts").unwrap();
    let mut changed = 0;
    let table = root().join("crates/locktopus-reverts/table");
    for file in std::fs::read_dir(table).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for line in text.lines() {
            let name = line.strip_prefix("file = \"");
            if let Some(name) = name.and_then(|rest| rest.strip_suffix('"')) {
                changed += 1;
                assert!(is_about(reverts, Path::new(name)), "{name}");
            }
            let test = line.strip_prefix("test = \"");
            if let Some((package, _)) = test.and_then(|test| test.split_once('/')) {
                let beside = Path::new(package).join("tests");
                let among = root().join("crates").join(package).is_dir();
                assert!(among || is_about(reverts, &beside), "{package}");
            }
        }
    }
    assert!(changed > 100, "{changed}");
}
