//! The levels: what each generates, which shipped sources it speaks about, and how it is run.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::outcome::{self, Outcome};
use crate::{build, failover, performance, sources};

/// One level.
#[derive(Debug)]
pub(crate) struct Level {
    pub(crate) name: &'static str,
    pub(crate) generates: &'static str,
    /// What its cases are.
    pub(crate) cases: &'static str,
    /// Sources that its result is about, and those that made it: files and folders. When they are others, it says nothing.
    pub(crate) about: &'static [&'static str],
    how: How,
}

#[derive(Debug)]
enum How {
    /// Tests of these targets; their number is that of the cases.
    Tests(&'static [&'static str]),
    /// The model, with so many schedules.
    Schedules(u64),
    Protocols,
    /// scripts/mutants, with this.
    Mutants(&'static [&'static str]),
    Reverts,
    /// scripts/soak, with this.
    Soak(&'static [&'static str]),
    /// scripts/failover with random faults that overlap.
    Nemesis,
    /// Runs that are kept: they take hours, some of them in containers.
    Failover,
    /// A measurement that is kept: it needs a machine that is idle.
    Performance,
}

const LUA: &str = "crates/locktopus-protocol/lua";
const CORE: &str = "crates/locktopus-core/src";
const PROTOCOL: &str = "crates/locktopus-protocol/src";
const MODEL: &str = "crates/locktopus-model/src";
const MODEL_TESTS: &str = "crates/locktopus-model/tests";
const CONFORMANCE: &str = "crates/locktopus-conformance/src";
const MUTANTS: &str = "crates/locktopus-mutants";

/// All of them, in the order of the table.
pub(crate) static LEVELS: &[Level] = &[
    Level {
        name: "unit",
        generates: "chosen cases, beside the code",
        cases: "tests",
        about: &["crates", "bench-harness/src"],
        how: How::Tests(&["--lib"]),
    },
    Level {
        name: "conformance",
        generates: "the contract on memory, a quorum, and the Redis backend on a modelled server; a test is a suite of hundreds of cases",
        cases: "tests",
        about: &[
            CORE,
            PROTOCOL,
            LUA,
            CONFORMANCE,
            MODEL,
            MUTANTS,
            "crates/locktopus-memory/src",
            "crates/locktopus-quorum/src",
        ],
        how: How::Tests(&["--test=conformance_memory", "--test=levels"]),
    },
    Level {
        name: "model",
        generates: "random schedules of simulated clients, messages and failovers on the real scripts",
        cases: "schedules",
        about: &[LUA, MODEL, MODEL_TESTS],
        how: How::Schedules(100_000),
    },
    Level {
        name: "simulation",
        generates: "random schedules of the shipped client on simulated servers; a test is hundreds of schedules",
        cases: "tests",
        about: &[
            CORE,
            PROTOCOL,
            LUA,
            MODEL,
            "crates/locktopus-quorum/src",
            "crates/locktopus-sim/src",
            "crates/locktopus-sim/tests",
        ],
        how: How::Tests(&[
            "--test=simulation",
            "--test=planted",
            "--test=script_mutants",
        ]),
    },
    Level {
        name: "precise",
        generates: "scripts one by one: to the millisecond, with each command failing, in queues that live long, beside Redisson",
        cases: "tests",
        about: &[LUA, MODEL, MODEL_TESTS],
        how: How::Tests(&[
            "--test=direct",
            "--test=edges",
            "--test=precise",
            "--test=transcripts",
            "--test=multitude",
            "--test=queue_life",
            "--test=executed",
            "--test=neighbours",
        ]),
    },
    Level {
        name: "fidelity",
        generates: "random commands, and calls of every script as the backend makes them, on the modelled and on a real server",
        cases: "tests",
        about: &[LUA, PROTOCOL, MODEL, MODEL_TESTS],
        how: How::Tests(&["--test=model_topology", "--test=script_fidelity_topology"]),
    },
    Level {
        name: "protocols",
        generates: "every state of hand-off, quarantine and quorum within bounds, and each rule left out",
        cases: "states",
        about: &["crates/locktopus-proofs/src"],
        how: How::Protocols,
    },
    Level {
        name: "mutants-sample",
        generates: "small changes of the scripts, a part of them that looks random and is always the same",
        cases: "mutants",
        about: &[LUA, MODEL, MODEL_TESTS, CONFORMANCE, MUTANTS],
        how: How::Mutants(&["--fresh", "--sample", "300"]),
    },
    Level {
        name: "mutants",
        generates: "every small change of the scripts",
        cases: "mutants",
        about: &[LUA, MODEL, MODEL_TESTS, CONFORMANCE, MUTANTS],
        how: How::Mutants(&["--fresh"]),
    },
    Level {
        name: "reverts",
        generates: "mends of faults that were found, taken back",
        cases: "reverts",
        about: &["crates"],
        how: How::Reverts,
    },
    Level {
        name: "failover",
        generates: "faults done to real servers under load, as docs/safety.md has them; mutants are locks that are broken on purpose",
        cases: "faults",
        about: &[
            CORE,
            PROTOCOL,
            LUA,
            "crates/locktopus/src",
            "crates/locktopus-redis/src",
            "crates/locktopus-fred/src",
            "crates/locktopus-quorum/src",
            "crates/locktopus-history/src",
            // How a run is shown is not what made it.
            "bench-harness/src/failover/plan",
            "bench-harness/src/failover/resource",
            "bench-harness/src/failover/run",
            "bench-harness/src/failover/worker",
            "bench-harness/failover/committed.toml",
        ],
        how: How::Failover,
    },
    Level {
        name: "performance",
        generates: "contention without faults, as docs/performance.md has it; violations are two holders at once and operations that failed",
        cases: "combinations",
        about: &[
            CORE,
            PROTOCOL,
            LUA,
            "crates/locktopus/src",
            "crates/locktopus-memory/src",
            "crates/locktopus-redis/src",
            "crates/locktopus-fred/src",
            "crates/locktopus-quorum/src",
            "bench-harness/src/measure/run",
            "bench-harness/src/measure/worker",
            "bench-harness/scenarios/targets.toml",
        ],
        how: How::Performance,
    },
    Level {
        name: "nemesis",
        generates: "random faults that overlap, two or three at once, on real servers under load; mutants as above",
        cases: "turns",
        about: &[
            CORE,
            PROTOCOL,
            LUA,
            "crates/locktopus/src",
            "crates/locktopus-redis/src",
            "crates/locktopus-fred/src",
            "crates/locktopus-quorum/src",
            "crates/locktopus-history/src",
            "bench-harness/src/failover",
            "bench-harness/failover/nemesis.toml",
        ],
        how: How::Nemesis,
    },
    Level {
        name: "soak",
        generates: "100,000 held locks, crowds of 10,000 waiters and 10,000 acquisitions a second for 20 minutes, with restarts; then nothing may be left",
        cases: "acquisitions",
        about: &[
            CORE,
            PROTOCOL,
            LUA,
            "crates/locktopus/src",
            "crates/locktopus-redis/src",
            "crates/locktopus-fred/src",
            "bench-harness/src/soak",
        ],
        how: How::Soak(&["--minutes", "20"]),
    },
];

/// The level of this name.
///
/// # Errors
///
/// If there is none.
pub(crate) fn named(name: &str) -> Result<&'static Level, String> {
    let names = || LEVELS.iter().map(|level| level.name).collect::<Vec<_>>();
    let found = LEVELS.iter().find(|level| level.name == name);
    found.ok_or_else(|| format!("there is no level {name}, but {}", names().join(", ")))
}

impl Level {
    /// The commit that its result is about: this one, or that of the build whose runs are kept.
    ///
    /// # Errors
    ///
    /// If its sources are not as they were committed there.
    pub(crate) fn commit(&self, root: &Path) -> Result<String, String> {
        match self.how {
            How::Failover => self.of_build(root, &failover::kept(root)?),
            How::Performance => self.of_build(root, &[performance::kept(root)?]),
            _ => sources::commit(root, self.about),
        }
    }

    /// The commit of the build that made what is kept, if its sources are those that there are.
    fn of_build(&self, root: &Path, runs: &[String]) -> Result<String, String> {
        let build = build::of(runs)?;
        sources::unchanged_since(root, &build, self.about)?;
        Ok(build)
    }

    /// Runs it: what it said, and whether it passed.
    pub(crate) fn run(&self, root: &Path) -> Result<(String, bool), String> {
        match self.how {
            How::Failover => return Ok((failover::kept(root)?.join("\n"), true)),
            How::Performance => return Ok((performance::kept(root)?, true)),
            _ => {}
        }
        let report = root.join("target/prove-schedules");
        // Before anything runs that would take long and then have nowhere to say so.
        std::fs::create_dir_all(root.join("target"))
            .and_then(|()| std::fs::write(&report, ""))
            .map_err(|error| format!("{}: {error}", report.display()))?;
        let (program, arguments): (&str, Vec<&str>) = match self.how {
            How::Tests(targets) => ("cargo", [TESTS, targets].concat()),
            How::Schedules(_) => ("cargo", [TESTS, &["--test=model"]].concat()),
            How::Protocols => ("cargo", [TESTS, &["--test=proofs"]].concat()),
            How::Mutants(arguments) => ("scripts/mutants", arguments.to_vec()),
            How::Reverts => ("scripts/reverts", Vec::new()),
            How::Soak(arguments) => ("scripts/soak", arguments.to_vec()),
            How::Nemesis => (
                "scripts/failover",
                vec!["--nemesis", "--keep-histories", "--out", NEMESIS],
            ),
            How::Failover | How::Performance => unreachable!("it is read above"),
        };
        let mut command = Command::new(program);
        command.args(&arguments).current_dir(root);
        if let How::Schedules(number) = self.how {
            command.args(["--", "--show-output"]);
            command.env("LOCKTOPUS_MODEL_SCHEDULES", number.to_string());
            // Tests run in the folder of their crate.
            command.env("LOCKTOPUS_MODEL_REPORT", absolute(&report)?);
        }
        command.stdin(Stdio::null()).stderr(Stdio::inherit());
        let failed = |error: std::io::Error| format!("{program}: {error}");
        let output = command.output().map_err(failed)?;
        let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
        if let How::Schedules(_) = self.how {
            let ran = std::fs::read_to_string(&report).map_err(failed)?;
            ran.lines()
                .for_each(|line| said.push_str(&format!("schedules: {line}\n")));
        }
        if let How::Nemesis = self.how {
            let path = root.join(NEMESIS).join("summary.json");
            let text = std::fs::read_to_string(path).map_err(failed)?;
            said = failover::one_line(&text)?;
        }
        if let How::Protocols = self.how {
            let page = root.join("docs/testing.md");
            said.push_str(&std::fs::read_to_string(page).map_err(failed)?);
        }
        Ok((said, output.status.success()))
    }

    /// What a run came to. One that failed without saying what was wrong is no result.
    pub(crate) fn read(&self, said: &str, passed: bool) -> Result<Outcome, String> {
        let outcome = match self.how {
            How::Tests(_) => outcome::of_tests(said)?,
            How::Schedules(asked) => schedules(said, asked)?,
            How::Protocols if passed => outcome::of_protocols(said)?,
            How::Protocols => return Err("a protocol is broken, or the page is another".to_owned()),
            How::Mutants(_) => outcome::of_script_mutants(said)?,
            How::Reverts => outcome::of_reverts(said)?,
            How::Soak(_) => outcome::of_soak(said)?,
            How::Nemesis => failover::outcome(said)?,
            How::Failover => failover::outcome(said)?,
            How::Performance => performance::outcome(said)?,
        };
        match passed || outcome.violations > 0 {
            true => Ok(outcome),
            false => Err("it failed, and does not say of what".to_owned()),
        }
    }
}

/// Where a nemesis leaves its report and its histories.
const NEMESIS: &str = "target/prove-nemesis";

const TESTS: &[&str] = &[
    "test",
    "--locked",
    "--workspace",
    "--all-features",
    "--no-fail-fast",
];

fn schedules(said: &str, asked: u64) -> Result<Outcome, String> {
    let tests = outcome::of_tests(said)?;
    let ran = said.lines().filter_map(|line| {
        let number = line.strip_prefix("schedules: ")?.split(' ').next()?;
        number.parse::<u64>().ok()
    });
    let cases: u64 = ran.sum();
    if cases < asked && tests.violations == 0 {
        return Err(format!("{cases} schedules ran, and not {asked}"));
    }
    let killed = outcome::model_mutants(said);
    if killed == 0 && tests.violations == 0 {
        return Err("no mutant was noticed, or it was said in other words".to_owned());
    }
    Ok(Outcome {
        cases,
        violations: tests.violations,
        killed: Some(killed),
        // One that is not noticed fails the test, which is a violation.
        survived: (tests.violations == 0).then_some(0),
    })
}

fn absolute(path: &Path) -> Result<std::path::PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

    use super::*;

    #[test]
    fn a_run_that_failed_or_was_too_short_is_no_result() {
        let tests = "test result: ok. 12 passed; 0 failed; 1 ignored\n";
        let level = named("unit").unwrap();
        assert_eq!(level.read(tests, true).unwrap().cases, 12);
        assert!(level.read(tests, false).is_err());
        assert!(named("protocols").unwrap().read(tests, false).is_err());

        let model = named("model").unwrap();
        let ran = |number: u64| format!("a: seed 3, Exclusion\n{tests}schedules: {number} Lock\n");
        let outcome = model.read(&ran(100_000), true).unwrap();
        assert_eq!((outcome.cases, outcome.killed), (100_000, Some(1)));
        assert!(model.read(&ran(99_999), true).is_err());
    }

    #[test]
    fn every_level_has_a_name_of_its_own_and_speaks_about_something() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for level in LEVELS {
            assert!(std::ptr::eq(named(level.name).unwrap(), level));
            assert!(!level.about.is_empty());
            level
                .about
                .iter()
                .for_each(|path| assert!(root.join(path).exists(), "{path}"));
        }
        assert!(named("nothing").is_err());
    }
}
