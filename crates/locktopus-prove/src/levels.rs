//! The levels: the table of all of them.

use crate::level::{How, Level};
use crate::sources::DEPENDENCIES;

const LUA: &str = "crates/locktopus-protocol/lua";
const CORE: &str = "crates/locktopus-core/src";
const PROTOCOL: &str = "crates/locktopus-protocol/src";
const MODEL: &str = "crates/locktopus-model/src";
const MODEL_TESTS: &str = "crates/locktopus-model/tests";
/// What only comparisons with a real server are made of: no other test has it in it.
const BUT_COMPARISONS: &str = ":!crates/locktopus-model/tests/script_fidelity_topology.rs";
const BUT_COMPARING: &str = ":!crates/locktopus-model/tests/script_fidelity_common/mod.rs";
const BUT_SHRINKING: &str = ":!crates/locktopus-model/tests/script_fidelity_common/shrink.rs";
const CONFORMANCE: &str = "crates/locktopus-conformance/src";
const MUTANTS: &str = "crates/locktopus-mutants";
/// What starts servers, and does things to them.
const TESTBED: &str = "crates/locktopus-testbed/src";
/// What all parts of the harness need: other libraries' locks, and what the machine does.
const SHARED: &str = "bench-harness/src/shared";
/// Others' locks in other languages.
const PEERS: &str = "bench-harness/peers";

/// What tests are about in which the scripts run on the model alone.
const ON_THE_MODEL: &[&str] = &[
    LUA,
    PROTOCOL,
    MODEL,
    MODEL_TESTS,
    BUT_COMPARISONS,
    BUT_COMPARING,
    BUT_SHRINKING,
];

/// What mutants of the scripts are about, a sample as well as all.
const SCRIPT_MUTANTS: &[&str] = &[
    LUA,
    // They put scripts together from their parts.
    "crates/locktopus-protocol/src/scripts",
    "crates/locktopus-protocol/src/scripts.rs",
    MODEL,
    MODEL_TESTS,
    BUT_COMPARISONS,
    BUT_COMPARING,
    BUT_SHRINKING,
    CONFORMANCE,
    MUTANTS,
    "scripts/mutants",
];

/// All of them, in the order of the table.
pub(crate) static LEVELS: &[Level] = &[
    Level {
        name: "unit",
        generates: "chosen cases, beside the code",
        cases: "tests",
        about: &["crates", "bench-harness", "examples"],
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
            "crates/locktopus-conformance/tests",
            "crates/locktopus-memory/src",
            "crates/locktopus-quorum/src",
        ],
        how: How::Tests(&["--test=conformance_memory", "--test=levels"]),
    },
    Level {
        name: "sequences",
        generates: "random sequences of calls on a lock of each kind, held against a sequential reference; a test is a hundred to a thousand of them",
        cases: "tests",
        about: &[
            CORE,
            PROTOCOL,
            LUA,
            TESTBED,
            DEPENDENCIES,
            "crates/locktopus/src",
            "crates/locktopus-memory/src",
            "crates/locktopus-redis/src",
            "crates/locktopus-fred/src",
            "crates/locktopus-tests/tests/common",
            "crates/locktopus-tests/tests/sequences_common",
            "crates/locktopus-tests/tests/sequences.rs",
            "crates/locktopus-tests/tests/sequences_topology.rs",
        ],
        how: How::Tests(&["--test=sequences", "--test=sequences_topology"]),
    },
    Level {
        name: "shared-owners",
        generates: "random schedules of tasks that share owners in two processes, and of a quorum of five scripted nodes; a test is hundreds of schedules",
        cases: "tests",
        about: &[
            CORE,
            "crates/locktopus-core/tests/common",
            "crates/locktopus-core/tests/shared_owners.rs",
            "crates/locktopus-quorum/src",
            "crates/locktopus-quorum/tests",
            "crates/locktopus-memory/src",
        ],
        how: How::Tests(&["--test=shared_owners", "--test=quorum_random"]),
    },
    Level {
        name: "interleavings",
        generates: "every order of the steps of a local queue, a lease, the watchdog and a shutdown within bounds, by loom",
        cases: "tests",
        about: &[
            CORE,
            "crates/locktopus-core/tests/interleavings",
            "crates/locktopus-core/tests/interleavings.rs",
            // It says which files of the core are compiled, and what is replaced in them.
            "crates/locktopus-proofs/build.rs",
            "crates/locktopus-proofs/tests/leases",
        ],
        how: How::Tests(&["--test=interleavings", "--test=leases"]),
    },
    Level {
        name: "fuzz",
        generates: "random changes of a stored corpus of names, URLs, plans, answers, ids and tickets; a test is thousands of them",
        cases: "tests",
        about: &[
            CORE,
            PROTOCOL,
            "crates/locktopus/src",
            "crates/locktopus-fuzz",
            "bench-harness/src/failover/plan",
            "bench-harness/src/measure/plan",
            SHARED,
        ],
        how: How::Tests(&["--test=fuzz"]),
    },
    Level {
        name: "model",
        generates: "random schedules of simulated clients, messages and failovers on the real scripts",
        cases: "schedules",
        about: ON_THE_MODEL,
        how: How::Schedules(100_000),
    },
    Level {
        name: "simulation",
        generates: "random schedules of the shipped client on simulated servers; planted faults and mutants of scripts in them",
        cases: "schedules",
        about: &[
            CORE,
            PROTOCOL,
            LUA,
            MODEL,
            "crates/locktopus-quorum/src",
            "crates/locktopus-sim/src",
            "crates/locktopus-sim/tests",
        ],
        how: How::Simulation(
            &[
                "--test=simulation",
                "--test=planted",
                "--test=evictions",
                "--test=script_mutants",
            ],
            20_000,
        ),
    },
    Level {
        name: "precise",
        generates: "scripts one by one: to the millisecond, with each command failing, in queues that live long, beside Redisson",
        cases: "tests",
        about: ON_THE_MODEL,
        how: How::Tests(&[
            "--test=direct",
            "--test=edges",
            "--test=precise",
            "--test=transcripts",
            "--test=multitude",
            "--test=deaf",
            "--test=kept_tokens",
            "--test=queue_life",
            "--test=executed",
            "--test=neighbours",
        ]),
    },
    Level {
        name: "fidelity",
        generates: "random commands, and calls of every script as the backend makes them, on the modelled and on a real server",
        cases: "tests",
        about: &[LUA, PROTOCOL, MODEL, MODEL_TESTS, TESTBED],
        how: How::Tests(&["--test=model_topology", "--test=script_fidelity_topology"]),
    },
    Level {
        name: "protocols",
        generates: "every state of hand-off, quarantine and quorum within bounds, and each rule left out",
        cases: "states",
        // The models mirror decisions and what was made of them: where those are others, somebody has to look whether the
        // models still are like them.
        about: &[
            "crates/locktopus-proofs/src",
            "crates/locktopus-proofs/tests/proofs.rs",
            CORE,
            PROTOCOL,
            LUA,
            "crates/locktopus-quorum/src",
            "docs/adr/0012-direct-hand-off.md",
            "docs/adr/0017-safety-modes.md",
            "docs/adr/0018-quorum.md",
            "docs/adr/0019-grants-are-published-last.md",
            "docs/adr/0028-the-newest-word-of-the-sentinels.md",
        ],
        how: How::Protocols,
    },
    Level {
        name: "mutants-sample",
        generates: "small changes of the scripts, a part of them that looks random and is always the same",
        cases: "mutants",
        about: SCRIPT_MUTANTS,
        how: How::Mutants(&["--fresh", "--sample", "300"]),
    },
    Level {
        name: "mutants",
        generates: "every small change of the scripts",
        cases: "mutants",
        about: SCRIPT_MUTANTS,
        how: How::Mutants(&["--fresh"]),
    },
    Level {
        name: "mutants-rust",
        generates: "every small change of the validity of leases, the watchdog and the quorum, as kept of each since its source changed last",
        cases: "mutants",
        about: &[
            CORE,
            "crates/locktopus-core/tests",
            "crates/locktopus-quorum/src",
            "crates/locktopus-quorum/tests",
            MUTANTS,
            "crates/locktopus-mutants-rust",
            "scripts/mutants-rust",
        ],
        how: How::RustMutants,
    },
    Level {
        name: "reverts",
        generates: "mends of faults that were found, taken back",
        cases: "reverts",
        about: &[
            "crates",
            // Some take back mends of the harness, and its tests notice.
            "bench-harness/src",
            "bench-harness/tests",
            "docs/acl.md",
            "scripts/reverts",
        ],
        how: How::Reverts,
    },
    Level {
        name: "judge",
        generates: "histories as runs of the faults below leave them: good ones, one of each broken promise, random ones; and broken locks on real servers",
        cases: "tests",
        about: &[
            "crates/locktopus-history",
            "bench-harness/src/failover",
            "bench-harness/failover/broken.toml",
            "bench-harness/tests/planted_topology.rs",
            "bench-harness/tests/common",
            SHARED,
            TESTBED,
            // The locks that are not broken, and what those that are were made from.
            CORE,
            PROTOCOL,
            LUA,
            "crates/locktopus/src",
            "crates/locktopus-redis/src",
            "crates/locktopus-fred/src",
            "crates/locktopus-quorum/src",
            DEPENDENCIES,
        ],
        how: How::Tests(&["--test=history", "--test=planted_topology"]),
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
            SHARED,
            TESTBED,
            DEPENDENCIES,
            PEERS,
            "bench-harness/failover/committed.toml",
            "bench-harness/failover/broken.toml",
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
            SHARED,
            TESTBED,
            DEPENDENCIES,
            PEERS,
            "bench-harness/src/measure/plan",
            "bench-harness/src/measure/record",
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
            SHARED,
            TESTBED,
            DEPENDENCIES,
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
            SHARED,
            TESTBED,
            DEPENDENCIES,
            "bench-harness/src/soak",
            "scripts/soak",
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

#[cfg(test)]
mod about;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use crate::outcome::Outcome;
    use crate::{demand, sources};

    #[test]
    fn a_run_that_failed_or_was_too_short_is_no_result() {
        let tests = "test result: ok. 12 passed; 0 failed; 1 ignored\n";
        let level = named("unit").unwrap();
        assert_eq!(level.read(tests, true).unwrap().cases, 12);
        assert!(level.read(tests, false).is_err());
        assert!(named("protocols").unwrap().read(tests, false).is_err());

        // Cargo says that all is well with a target in which no test is left.
        let precise = named("precise").unwrap();
        let none = "test result: ok. 0 passed; 0 failed; 3 ignored\n";
        assert_eq!(precise.read(&tests.repeat(10), true).unwrap().cases, 120);
        assert!(
            precise
                .read(&[&tests.repeat(9), none].concat(), true)
                .is_err()
        );

        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let is_enough = |level: &Level, outcome: &Outcome| {
            demand::refused(&root, level, outcome).unwrap().is_none()
        };
        let simulation = named("simulation").unwrap();
        let ran = |said: &str| format!("a: seed 3, Exclusion\n{said}\n{}", tests.repeat(4));
        let outcome = simulation.read(&ran("20000 schedules, 9 s of their time, exclusion required in 16000, until a fault in 4000: {"), true);
        let outcome = outcome.unwrap();
        assert_eq!((outcome.cases, outcome.killed), (20_000, Some(1)));
        assert!(is_enough(simulation, &outcome));
        let short = simulation.read(&ran("300 schedules, 9 s of their time, exclusion required in 240, until a fault in 60: {"), true);
        assert!(!is_enough(simulation, &short.unwrap()));
        // Nothing that was planted was noticed, or it was said in other words.
        let nothing = Outcome {
            killed: Some(0),
            ..outcome
        };
        assert!(!is_enough(simulation, &nothing));
        let outcome = simulation.read(&ran("74 of 20000 schedules failed: [3]"), false);
        assert_eq!(outcome.unwrap().violations, 74);

        let model = named("model").unwrap();
        let ran = |number: u64| format!("a: seed 3, Exclusion\n{tests}schedules: {number} Lock\n");
        let outcome = model.read(&ran(100_000), true).unwrap();
        assert_eq!((outcome.cases, outcome.killed), (100_000, Some(1)));
        assert!(is_enough(model, &outcome));
        assert!(!is_enough(model, &model.read(&ran(99_999), true).unwrap()));
    }

    /// What docs/testing.md says of states is only true if the tests that compare it ran.
    #[test]
    fn the_page_alone_proves_no_protocol() {
        let page = include_str!("../../../docs/testing.md");
        let protocols = named("protocols").unwrap();
        let ran = format!("test result: ok. 4 passed; 0 failed; 0 ignored\n{page}");
        assert!(protocols.read(&ran, true).unwrap().cases > 1_000_000);
        let none = ran.replace("4 passed", "0 passed");
        assert!(protocols.read(&none, true).is_err());
        assert!(protocols.read(page, true).is_err());
    }

    /// Faults that were not done, and errors that nothing explains, break no promise and fail the run.
    #[test]
    fn a_nemesis_that_failed_is_violated_whatever_its_cells_say() {
        let mut run = crate::failover::example();
        let said = serde_json::to_string(&run).unwrap();
        let nemesis = named("nemesis").unwrap();
        assert_eq!(nemesis.read(&said, true).unwrap().violations, 0);
        assert_eq!(nemesis.read(&said, false).unwrap().violations, 1);
        // Nothing else tries what it skipped.
        run.skip("a cell", "containers");
        let said = serde_json::to_string(&run).unwrap();
        assert_eq!(nemesis.read(&said, true).unwrap().violations, 1);
    }

    #[test]
    fn every_level_has_a_name_of_its_own_and_speaks_about_something() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for level in LEVELS {
            assert!(std::ptr::eq(named(level.name).unwrap(), level));
            assert!(!level.about.is_empty());
            for path in level.about {
                let path = path.trim_start_matches(sources::BUT);
                assert!(root.join(path).exists(), "{path}");
            }
        }
        assert!(named("nothing").is_err());
    }

    /// A protocol that is shipped otherwise than its model has it makes the model's result old.
    #[test]
    fn protocols_speak_about_everything_that_their_models_mirror() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let about = named("protocols").unwrap().about;
        let covers = |path: &str| {
            about
                .iter()
                .any(|it| path.starts_with(it) || it.starts_with(path))
        };
        let mirrored = mirrored(&root.join("crates/locktopus-proofs/src"));
        for needed in [
            "crates/locktopus-protocol/lua/acquire.lua",
            "docs/adr/0012-",
        ] {
            assert!(mirrored.contains(needed), "{needed}: {mirrored:?}");
        }
        for path in &mirrored {
            assert!(covers(path), "a model mirrors {path}");
        }
    }

    /// Decisions and files that the models name as what they are like.
    fn mirrored(folder: &Path) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.extend(mirrored(&path));
                continue;
            }
            let text = std::fs::read_to_string(path).unwrap();
            let comments = text.lines().filter(|line| line.trim().starts_with("//"));
            for comment in comments {
                let words = comment.split(|it: char| !it.is_alphanumeric() && !"./_-".contains(it));
                let words = words.map(|word| word.trim_end_matches('.'));
                found.extend(words.filter_map(|word| {
                    let decision = word.len() == 4 && word.chars().all(|it| it.is_ascii_digit());
                    match word.split_once('/') {
                        Some(("lua", _)) => Some(format!("crates/locktopus-protocol/{word}")),
                        Some(("part", _)) => Some(format!("{LUA}/{word}")),
                        Some(("crates", _)) => Some(word.to_owned()),
                        _ => decision.then(|| format!("docs/adr/{word}-")),
                    }
                }));
            }
        }
        found
    }
}
