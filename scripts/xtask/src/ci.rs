//! Everything that must hold before a change is merged: `.ci/run`.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use crate::cargo::Built;
use crate::checks::{features, layers, prose, sizes};
use crate::failure::{Done, Failure, fail, need};
use crate::shell::{Shell, say};
use crate::{Named, files, packages, product, proof, release, tools};

pub(crate) const HELP: &str = "\
Runs every check that a change must pass before it is merged. Run it from anywhere, without arguments.

Usage: .ci/run

It installs what it needs from the system's packages, and asks nothing. It stops at the first step that fails and prints the
end of that step's output. Otherwise it prints how long each step took.";

/// Combinations of the facade's features, besides no features. Each must build alone.
const FEATURE_SETS: &str = "memory redis fred redis,fred memory,tls redis,tls fred,tls memory,blocking cron macros \
                            memory,tracing memory,metrics";

/// Crates that may not depend on a client library.
const CLIENT_FREE: &str = "locktopus-contract locktopus-fence locktopus-core locktopus-recipes locktopus-memory \
                           locktopus-quorum locktopus-protocol locktopus-conformance locktopus-history locktopus-layers";

/// Crates that may not depend on the engine, so that a change of the engine does not rebuild them.
const ENGINE_FREE: &str = "locktopus-contract locktopus-fence locktopus-memory locktopus-quorum locktopus-protocol \
                           locktopus-redis locktopus-fred locktopus-layers";

const STEPS: &[Named] = &[
    ("format", format),
    ("scripts", scripts),
    ("what scripts decide", |sh| sh.cargo("test").args(["--package", "xtask"]).run()),
    ("arrows between crates", arrows),
    ("layers inside crates", |sh| layers::main(sh, &[])),
    ("options of URLs", options_of_urls),
    ("sizes", |sh| sizes::main(sh, &[])),
    ("prose", |sh| prose::main(sh, &[])),
    ("clippy", clippy),
    ("sets of features", feature_sets),
    ("docs", |sh| {
        sh.cargo("doc")
            .args(["--no-deps", "--all-features"])
            .env("RUSTDOCFLAGS", "--deny warnings")
            .run()
    }),
    ("tests", |sh| product::main(&sh.again("test"), &[])),
    ("a moment of proof", |sh| proof::main(sh, &["moment".to_owned()])),
    ("a moment of the harness", harness),
    ("tarballs", |sh| release::main(sh, &["--dry-run".to_owned(), "--quick".to_owned()])),
];

pub(crate) fn main(sh: &Shell, _: &[String]) -> Done {
    if sh.var("CI").is_none() {
        sh.export("CI", "true");
    }
    // Nothing is built twice here, so incremental builds would only cost: a fifth of a test's
    // compilation (2.8 s of CPU instead of 2.2).
    sh.export("CARGO_INCREMENTAL", "0");
    sh.export("CARGO_TARGET_DIR", sh.target().to_string_lossy());
    steps(sh, STEPS)
}

fn steps(sh: &Shell, steps: &[Named]) -> Done {
    let mut timings = Vec::new();
    for (name, run) in steps {
        say(format!("\n== {name}"));
        let begun = Instant::now();
        if let Err(failure) = run(&sh.again("run")) {
            if let Failure::Said(words) | Failure::Missing(words) = &failure {
                sh.warn(words);
            }
            // Many CI services keep only the last lines of a failed run. They should show the
            // error, so the table is left out.
            say(format!("FAILED: {name}"));
            return Err(Failure::Code(if let Failure::Code(code) = failure { code } else { 1 }));
        }
        timings.push(format!("{:5} s  {name}", begun.elapsed().as_secs()));
        say(format!("({})", timings.last().map_or("", String::as_str)));
    }
    say(format!("\nall steps passed\n\n{}", timings.join("\n")));
    Ok(())
}

fn format(sh: &Shell) -> Done {
    for folder in [".", "proof", "examples/recipes"] {
        sh.cmd("cargo").args(["fmt", "--all", "--check"]).dir(sh.root.join(folder)).run()?;
    }
    Ok(())
}

fn clippy(sh: &Shell) -> Done {
    for folder in [".", "proof"] {
        let clippy = sh.cargo("clippy").args(["--workspace", "--all-features", "--all-targets"]);
        clippy.args(["--", "--deny", "warnings"]).dir(sh.root.join(folder)).run()?;
    }
    Ok(())
}

fn feature_sets(sh: &Shell) -> Done {
    for set in [""].into_iter().chain(FEATURE_SETS.split(' ')) {
        say(format!("features: {}", if set.is_empty() { "none" } else { set }));
        if !features::check(sh, "locktopus", set)? {
            fail!("locktopus does not build with the features [{set}]");
        }
    }
    Ok(())
}

/// All shell scripts.
pub(crate) fn shell_files(sh: &Shell) -> Done<Vec<PathBuf>> {
    let mut found = ["scripts/xtask/door", "proof/run", "docker/make-certs"]
        .map(|file| sh.root.join(file))
        .to_vec();
    for folder in ["scripts", ".ci"] {
        let entries = fs::read_dir(sh.root.join(folder))?.flatten().map(|entry| entry.path());
        found.extend(entries.filter(|path| path.is_file() && path.extension().is_none()));
    }
    found.sort();
    Ok(found)
}

fn scripts(sh: &Shell) -> Done {
    let ensured = packages::ensure(
        sh,
        || sh.have("shellcheck"),
        &["shellcheck"],
        "no shellcheck after installing it",
    );
    if let Err(Failure::Missing(why)) = ensured {
        return sh.not_checked(format!("the scripts, by shellcheck: {why}"));
    }
    ensured?;
    sh.cmd("shellcheck")
        .args(["--severity", "warning", "--exclude", "SC1007"])
        .args(shell_files(sh)?)
        .run()
}

/// Contracts stay free of clients, so that a third adapter needs no change in them.
fn arrows(sh: &Shell) -> Done {
    let clients =
        ["redis", "redis-protocol", "fred", "rslock", "locktopus-redis", "locktopus-fred"];
    for (names, barred) in [(CLIENT_FREE, &clients[..]), (ENGINE_FREE, &["locktopus-core"])] {
        for name in names.split(' ') {
            let tree = sh
                .cargo("tree")
                .args(["--package", name, "--edges", "normal,build", "--prefix", "none"])
                .read()?;
            let first =
                |line: &&str| line.split_once(" v").is_some_and(|(one, _)| barred.contains(&one));
            if let Some(found) = tree.lines().find(first) {
                fail!("{name} depends on {found}");
            }
        }
        say(format!("no {} in {names}", barred.join(", ")));
    }
    for name in ["contract", "fence", "core", "recipes", "memory", "quorum"] {
        let folder = sh.root.join(format!("crates/locktopus-{name}/src"));
        for file in files::below(&folder, ".rs")? {
            // This file has the layouts of other libraries.
            if file.ends_with("libraries.rs") {
                continue;
            }
            let text = fs::read_to_string(&file)?;
            if let Some((number, line)) =
                text.lines().enumerate().find(|(_, line)| knows_redis(line))
            {
                fail!(
                    "locktopus-{name} knows Redis: {}:{}:{line}",
                    files::shown(sh, &file),
                    number + 1
                );
            }
        }
    }
    Ok(())
}

/// Comments may mention Redis, code may not.
fn knows_redis(line: &str) -> bool {
    let lower = line.to_lowercase();
    (lower.contains("redis") || lower.contains("valkey"))
        && !line.trim_start().starts_with("//")
        && !line.contains("redisson_")
        && !line.contains("MutexProfile::")
}

/// The options in the first column of a page's tables.
fn options_of(page: &str) -> Vec<&str> {
    let rows = page
        .lines()
        .map(|line| line.strip_prefix("//! ").unwrap_or(line))
        .filter(|line| line.starts_with("| `"));
    let cells = rows.filter_map(|row| row[2..].split_once(" |").map(|(cell, _)| cell));
    let quoted = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let mut found: Vec<_> = quoted
        .filter(|name| name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_'))
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The book and the documentation of the URL module must list the same options.
fn options_of_urls(sh: &Shell) -> Done {
    let read = |file: &str| fs::read_to_string(sh.root.join(file));
    let (page, module) = (read("docs/urls.md")?, read("crates/locktopus/src/url.rs")?);
    let (page, module) = (options_of(&page), options_of(&module));
    if page != module {
        fail!(
            "docs/urls.md and crates/locktopus/src/url.rs have other options: {page:?} and {module:?}"
        );
    } else if page.is_empty() {
        // Two pages without a table are equal too.
        fail!("docs/urls.md has no table of options");
    }
    say(format!("{} options", page.len()));
    Ok(())
}

/// A measurement and faults, too short for figures: the harness runs, finds no overlap, and reads
/// its own report.
fn harness(sh: &Shell) -> Done {
    need(tools::server(sh), "no server program")?;
    need(tools::clock_library(sh), "no libfaketime")?;
    sh.cargo("test").args(["--package", "bench-harness", "--lib", "--bins"]).run()?;
    let build = sh.cargo("build").args([
        "--quiet",
        "--package",
        "bench-harness",
        "--bin",
        "locktopus-bench",
    ]);
    let program = Built::by(build)?.program("locktopus-bench")?;
    let out = sh.scratch()?.join("harness");
    sh.cmd(&program).args(["run", "--smoke", "--provider", "plain", "--out"]).arg(&out).run()?;
    for file in ["report.json", "report.html"] {
        if !fs::metadata(out.join(file)).is_ok_and(|about| about.len() > 0) {
            fail!("the harness left no {file}");
        }
    }
    sh.cmd(&program).arg("report").arg(out.join("report.json")).read()?;
    sh.cmd(&program).args(["failover", "--smoke", "--out"]).arg(out.join("failover")).run()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::shell;

    #[test]
    fn a_step_that_fails_is_the_last_one() {
        let sh = shell();
        let steps_of = |second| {
            [
                ("one", (|_| Ok(())) as fn(&Shell) -> Done),
                ("two", second),
                ("three", |_| fail!("never")),
            ]
        };
        assert_eq!(steps(&sh, &steps_of(|_| Err(Failure::Code(7)))), Err(Failure::Code(7)));
        assert_eq!(steps(&sh, &steps_of(|_| fail!("no"))), Err(Failure::Code(1)));
        assert_eq!(steps(&sh, &steps_of(|_| Ok(()))[..2]), Ok(()));
    }

    #[test]
    fn options_are_those_of_the_first_column() {
        let page = "| `b` | `no` |\n//! | `a`, `c_d` | x |\n| word `x` | y |\n| `?tls=NO` |\n";
        assert_eq!(options_of(page), ["a", "b", "c_d"]);
    }

    #[test]
    fn code_of_the_core_knows_no_redis() {
        assert!(knows_redis("let x = Valkey;") && knows_redis("fn redis() {"));
        assert!(
            !knows_redis("    /// As on Redis")
                && !knows_redis("fn redisson_lock()")
                && !knows_redis("let memory = 1;")
        );
    }
}
