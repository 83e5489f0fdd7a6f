//! `scripts/prove`: one table of what each level of proof generates, how much of it was run, and what came of it.
//!
//! Results are kept in docs/testing.json, each with a digest of the shipped sources that it speaks about. A result about
//! other sources than there are is refused, whenever it was made.
//!
//! | module | what is in it |
//! |---|---|
//! | [`level`] | a level, and how it is run |
//! | [`levels`] | the table of all of them |
//! | [`demand`] | what a result must have to count |
//! | [`outcome`] | what a run says, read from what it prints |
//! | [`build`] | which build made what is kept |
//! | [`environment`] | what a level is run in |
//! | [`failover`] | the runs that docs/safety.md shows |
//! | [`performance`] | the measurement that docs/performance.md shows |
//! | [`sources`] | digests of sources, and the commit |
//! | [`kept`] | the results |
//! | [`page`] | the table in docs/testing.md |
//!
//! Layers, lowest first: outcome, sources, build, environment, failover|performance, level, demand, levels, kept, page.

mod build;
mod demand;
mod environment;
mod failover;
mod kept;
mod level;
mod levels;
mod nemesis;
mod outcome;
mod page;
mod performance;
#[cfg(test)]
mod repository;
mod sources;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

use crate::kept::{Entry, Kept};
use crate::level::Level;
use crate::levels::LEVELS;

/// Prints one table of what each level of proof ran, and what came of it.
#[derive(Debug, Parser)]
#[command(name = "scripts/prove")]
struct Options {
    /// Run these levels, and keep what came of them.
    #[arg(long, value_name = "LEVEL", num_args = 1.., conflicts_with = "check")]
    run: Vec<String>,
    /// Fail if the page is not what the results say, or if a level was not run, was violated, or ran on other sources than
    /// there are.
    #[arg(long)]
    check: bool,
    /// Fail only if the page is not what the results say.
    #[arg(long, conflicts_with_all = ["check", "run"])]
    check_page: bool,
    /// The root of the sources.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    root: PathBuf,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(what) => {
            eprintln!("prove: {what}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<bool, String> {
    let root = &options.root;
    let mut kept = Kept::read(root)?;
    let mut fine = true;
    for name in &options.run {
        let level = levels::named(name)?;
        let entry = prove(root, level)?;
        println!("{name}: {}", entry.outcome);
        fine &= entry.outcome.violations == 0;
        kept.levels.insert(name.clone(), entry);
        // Now, so that a level that cannot be run does not cost the results of those before it.
        kept.write(root)?;
    }
    let table = page::table(&kept);
    print!("{table}");
    if options.check || options.check_page {
        page::check(root, &table)?;
    } else {
        page::write(root, &table)?;
    }
    if options.check {
        let mut unproven = unproven(root, LEVELS, &kept)?;
        unproven.extend(other_files(root, LEVELS, &kept));
        unproven.iter().for_each(|line| println!("{line}"));
        fine &= unproven.is_empty();
    }
    Ok(fine)
}

/// Runs a level, of sources that are committed as they are.
fn prove(root: &Path, level: &Level) -> Result<Entry, String> {
    let commit = level.commit(root)?;
    let about = sources::digest(root, level.about)?;
    let (said, passed) = level.run(root)?;
    let outcome = level
        .read(&said, passed)
        .and_then(|outcome| match demand::refused(root, level, &outcome)? {
            Some(why) if outcome.violations == 0 => Err(why),
            _ => Ok(outcome),
        })
        .map_err(|what| format!("{}: {what}; it said\n{said}", level.name))?;
    if sources::digest(root, level.about)? != about {
        return Err(format!("{}: its sources changed meanwhile", level.name));
    }
    Ok(Entry {
        outcome,
        commit,
        about,
    })
}

/// Levels that were not run, or not enough; that were violated; whose sources are others now, or others than those of the commit
/// that they name; or that there are not.
fn unproven(root: &Path, levels: &[Level], kept: &Kept) -> Result<Vec<String>, String> {
    let mut unproven = Vec::new();
    for name in kept.levels.keys() {
        if !levels.iter().any(|level| level.name == name) {
            unproven.push(format!("STALE: there is no level {name}"));
        }
    }
    for level in levels {
        let Some(entry) = kept.levels.get(level.name) else {
            unproven.push(format!("NOT RUN: scripts/prove --run {}", level.name));
            continue;
        };
        if entry.outcome.violations > 0 {
            unproven.push(format!("VIOLATED: {}: {}", level.name, entry.outcome));
        }
        if let Some(why) = demand::refused(root, level, &entry.outcome)? {
            unproven.push(format!("NOT ENOUGH: {}: {why}", level.name));
        }
        if sources::digest(root, level.about)? != entry.about {
            unproven.push(format!(
                "STALE: {} was run at {}, and {} changed since: scripts/prove --run {}",
                level.name,
                entry.commit,
                level.about.join(" or "),
                level.name,
            ));
        } else if let Err(why) = sources::unchanged_since(root, &entry.commit, level.about) {
            unproven.push(format!(
                "STALE: {} names a commit of other sources: {why}",
                level.name
            ));
        }
    }
    Ok(unproven)
}

/// Levels whose files are not those that they were read from, or say something else.
fn other_files(root: &Path, levels: &[Level], kept: &Kept) -> Vec<String> {
    let of_files = levels.iter().filter(|level| level.is_of_files());
    let other = of_files.filter_map(|level| {
        let entry = kept.levels.get(level.name)?;
        let says = match prove(root, level) {
            Ok(now) if now.outcome == entry.outcome && now.commit == entry.commit => return None,
            Ok(now) => format!("at {}: {}", now.commit, now.outcome),
            Err(why) => why,
        };
        Some(format!(
            "STALE: {} was {} at {}, and what is kept of it says {says}: scripts/prove --run {}",
            level.name, entry.outcome, entry.commit, level.name
        ))
    });
    other.collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

    use super::*;
    use crate::level::How;
    use crate::outcome::Outcome;
    use crate::repository::Repository;

    /// Another measurement, a worse one, or none, after the one that the page speaks about.
    #[test]
    fn files_that_are_others_than_were_read_are_told() {
        const FILE: &str = "docs/performance.json";
        let repository = Repository::new("other-files");
        let root = &repository.root;
        let level = Level::of_test("performance", &["crates"], How::Performance);
        let levels = [level];
        let made = |build: &str, errors: u64| {
            let mut summary = performance::example(build);
            summary.cells[0].errors = errors;
            summary.to_json()
        };
        let plan = "rounds = 1\n[[cell]]\nscenario = \"uncontended\"\nclients = [\"redis-rs\"]\n\
                    topologies = [\"standalone\"]\nkinds = [\"lock\"]\n";
        let plan = ("bench-harness/scenarios/targets.toml", plan);
        let build = repository.commit(&[("crates/one", "1"), plan]);
        let entry = Entry {
            outcome: Outcome {
                cases: 1,
                ..Outcome::default()
            },
            commit: build.clone(),
            about: String::new(),
        };
        let kept = Kept {
            levels: [("performance".to_owned(), entry)].into(),
        };
        let told = || other_files(root, &levels, &kept);
        let next = repository.commit(&[(FILE, &made(&build, 0))]);
        assert_eq!(told(), Vec::<String>::new());
        repository.commit(&[(FILE, &made(&build, 2))]);
        assert!(told()[0].contains("1 cases, 2 violations"), "{:?}", told());
        repository.commit(&[(FILE, &made(&next, 0))]);
        assert!(told()[0].contains(&next), "{:?}", told());
        std::fs::remove_file(root.join(FILE)).unwrap();
        assert!(told()[0].contains(FILE), "{:?}", told());
    }

    /// A run that says that all is well, of another number than was asked for.
    #[test]
    fn too_little_is_no_result_of_a_run_either() {
        use std::os::unix::fs::PermissionsExt;

        const SCRIPT: &str = "scripts/mutants-rust";
        const SURVIVORS: &str = "crates/locktopus-mutants/survivors-rust";
        let repository = Repository::new("too-little");
        let root = &repository.root;
        let level = Level::of_test("mutants-rust", &["crates"], How::RustMutants);
        let says = "#!/bin/sh\necho mutants of the Rust: 7 noticed, 1 survives\n";
        repository.commit(&[(SCRIPT, says), (SURVIVORS, "one\n")]);
        std::fs::set_permissions(root.join(SCRIPT), PermissionsExt::from_mode(0o755)).unwrap();
        repository.commit(&[("docs/other", "1")]);
        assert_eq!(prove(root, &level).unwrap().outcome.survived, Some(1));
        repository.commit(&[(SURVIVORS, "one\ntwo\n")]);
        let told = prove(root, &level).unwrap_err();
        assert!(told.contains("7 mutants noticed and 1 not"), "{told}");
    }

    #[test]
    fn what_is_not_proven_is_told() {
        let repository = Repository::new("unproven");
        let root = &repository.root;
        let levels = [
            Level::of_test("unit", &["crates"], How::Tests(&["--lib"])),
            Level::of_test("model", &["crates/model"], How::Schedules(100)),
        ];
        let first = repository.commit(&[("crates/model/one", "1"), ("crates/other", "1")]);
        let commit = repository.commit(&[("crates/other", "2")]);
        let told = |change: fn(&mut Kept, &str)| {
            let entry = |level: &Level| Entry {
                outcome: Outcome {
                    cases: 100,
                    killed: (level.name == "model").then_some(7),
                    survived: (level.name == "model").then_some(0),
                    ..Outcome::default()
                },
                commit: commit.clone(),
                about: sources::digest(root, level.about).unwrap(),
            };
            let all = levels
                .iter()
                .map(|level| (level.name.to_owned(), entry(level)));
            let mut kept = Kept {
                levels: all.collect(),
            };
            change(&mut kept, &first);
            unproven(root, &levels, &kept).unwrap()
        };
        fn of<'a>(kept: &'a mut Kept, level: &str) -> &'a mut Entry {
            kept.levels.get_mut(level).unwrap()
        }
        assert_eq!(told(|_, _| ()), Vec::<String>::new());
        // The model's sources are those of the first commit too.
        assert_eq!(
            told(|kept, first| of(kept, "model").commit = first.to_owned()),
            Vec::<String>::new()
        );
        let only = |change: fn(&mut Kept, &str), word: &str, level: &str| {
            let lines = told(change);
            assert_eq!(lines.len(), 1, "{lines:?}");
            let fits = lines[0].starts_with(word) && lines[0].contains(level);
            assert!(fits, "{lines:?}");
        };
        only(
            |kept, _| drop(kept.levels.remove("model")),
            "NOT RUN",
            "model",
        );
        only(
            |kept, _| of(kept, "model").outcome.violations = 1,
            "VIOLATED",
            "model",
        );
        only(
            |kept, _| of(kept, "model").outcome.cases = 99,
            "NOT ENOUGH",
            "model",
        );
        only(
            |kept, _| of(kept, "model").outcome.killed = None,
            "NOT ENOUGH",
            "model",
        );
        only(
            |kept, _| of(kept, "model").outcome.survived = Some(1),
            "NOT ENOUGH",
            "model",
        );
        only(
            |kept, _| of(kept, "unit").outcome.cases = 0,
            "NOT ENOUGH",
            "unit",
        );
        only(
            |kept, _| of(kept, "model").about = "others".to_owned(),
            "STALE",
            "model",
        );
        // A commit of other sources, one that nobody knows, and none.
        only(
            |kept, first| of(kept, "unit").commit = first.to_owned(),
            "STALE",
            "unit",
        );
        only(
            |kept, _| of(kept, "unit").commit = "deadbeef00".to_owned(),
            "STALE",
            "unit",
        );
        only(
            |kept, first| of(kept, "unit").commit = format!("{first}-dirty"),
            "STALE",
            "unit",
        );
        only(
            |kept, _| {
                let entry = kept.levels["model"].clone();
                kept.levels.insert("modell".to_owned(), entry);
            },
            "STALE",
            "modell",
        );
    }
}
