//! The product's tests: `scripts/test`.

mod needs;
mod summary;

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, thread};

use crate::failure::{Done, fail};
use crate::shell::{Cmd, Shell, cores, say};
use needs::Found;
use summary::Summary;

pub(crate) const HELP: &str = "\
Runs the product's tests, and then says what ran and what was skipped.

Usage: scripts/test [--quick | --only TEST] [--far] [--loaded]

  (nothing)   unit, doc and integration tests; servers as child processes and in containers, in every topology
  --quick     only tests that need no server
  --only TEST only this test program of testing/suite: conformance_far, conformance_images or neighbour_libraries,
              which run at night
  --far       the conformance suite at every distance, on every topology and through each client, before a
              release; takes long, mostly waiting
  --loaded    the tests beside three busy loops for each core, to find tests that depend on the machine's
              speed; measures nothing

Proofs are in proof/ (proof/run), measurements in bench-harness/ (scripts/bench, scripts/failover).

It first installs or starts what tests need, if permitted: a server program, a container engine and others. It skips
tests that still lack a program and says so;
in CI (the variable CI is set) that is a failure.

LOCKTOPUS_SERVER_BIN=PATH   use this server program
LOCKTOPUS_SKIP_POD=REASON   do without containers, also in CI
LOCKTOPUS_SKIP_JDK=REASON   do without Redisson, also in CI
LOCKTOPUS_SKIP_REDIS_CLI=REASON   do without TLS handshakes by redis-cli, also in CI
LOCKTOPUS_SKIP_REDIS_PY=REASON   do without redis-py, also in CI
LOCKTOPUS_SKIP_FAKETIME=REASON   do without servers whose clock is set, also in CI
LOCKTOPUS_SKIP_PIP=REASON    do without python-redis-lock, sherlock and pottery, also in CI
LOCKTOPUS_SKIP_NODE=REASON   do without node-redlock and other libraries of Node, also in CI
LOCKTOPUS_SKIP_GO=REASON     do without redsync and redislock, also in CI
LOCKTOPUS_NO_INSTALL=1      install nothing
LOCKTOPUS_BACKTRACE=1       show the frames of panics, as RUST_BACKTRACE does
RUST_TEST_THREADS=N         so many tests at a time: three for each core, unless given
LOCKTOPUS_REQUIRE_ALL=1     that something could not be downloaded is a failure too: at night";

/// Test programs that run only at night.
const NIGHTLY: [&str; 3] = ["conformance_far", "conformance_images", "neighbour_libraries"];

/// The test programs that need servers: the one of the facade, and those of single crates.
const SUITE: &str = "suite";
const WITH_SERVERS: &str = "servers";

/// The options of `scripts/test`.
#[derive(Debug, Default)]
struct Options {
    quick: bool,
    only: Option<String>,
    far: bool,
    loaded: bool,
}

impl Options {
    fn of(arguments: &[String]) -> Done<Self> {
        let mut options = Self::default();
        let mut rest = arguments.iter();
        while let Some(option) = rest.next() {
            match option.as_str() {
                "--quick" => options.quick = true,
                "--far" => options.far = true,
                "--loaded" => options.loaded = true,
                "--only" => {
                    let test = rest.next().map_or("", String::as_str);
                    if !NIGHTLY.contains(&test) {
                        fail!(
                            "--only needs conformance_far, conformance_images or neighbour_libraries, not '{test}'"
                        );
                    }
                    options.only = Some(test.to_owned());
                }
                _ => fail!("unknown option {option}; --help shows what there is"),
            }
        }
        Ok(options)
    }
}

pub(crate) fn main(sh: &Shell, arguments: &[String]) -> Done {
    let options = Options::of(arguments)?;
    if options.far {
        sh.export("LOCKTOPUS_FAR", "all");
    }
    // A hundred frames of the runtime would bury the message and the place of a panic.
    sh.export("RUST_BACKTRACE", sh.var("LOCKTOPUS_BACKTRACE").unwrap_or_else(|| "0".to_owned()));
    // Most tests with servers spend their time waiting: for leases to end, for failovers, for
    // distant answers.
    let threads = sh.var("RUST_TEST_THREADS").unwrap_or_else(|| (3 * cores()).to_string());
    sh.export("RUST_TEST_THREADS", threads);
    let mut summary = Summary::new(sh);
    let found = if options.quick {
        sh.export("LOCKTOPUS_SKIP_REDIS_PY", "--quick");
        summary.outcome("SKIPPED  tests with servers: --quick");
        Found::default()
    } else {
        needs::look(sh, options.only.as_deref(), &mut summary)?
    };
    let confined = if options.quick { None } else { needs::confined(sh)? };
    let tests = Tests { sh, only: options.only, found, confined };
    tests.build()?;
    if options.loaded {
        burn(&mut summary);
    }
    tests.run(&mut summary)?;
    summary.tell(sh.seconds())
}

/// Which tests to run, and on what.
struct Tests<'a> {
    sh: &'a Shell,
    only: Option<String>,
    found: Found,
    /// The path that tests get in CI.
    confined: Option<String>,
}

impl Tests<'_> {
    /// One selection of packages and features, because another one would rebuild everything.
    fn cargo_test(&self) -> Cmd {
        let test = self.sh.cmd("cargo").args(["test", "--all-features", "--no-fail-fast"]);
        let test = test.args(self.sh.in_ci().then_some("--locked"));
        let runner = |folder: &String| {
            [
                "--config".to_owned(),
                format!("target.'cfg(all())'.runner = ['env', 'PATH={folder}']"),
            ]
        };
        test.args(self.confined.iter().flat_map(runner))
    }

    fn selection(&self) -> Vec<&str> {
        self.only.iter().flat_map(|only| ["--package", "locktopus-suite", "--test", only]).collect()
    }

    fn build(&self) -> Done {
        say("building");
        if self.cargo_test().args(self.selection()).arg("--no-run").code()? != 0 {
            fail!("the tests do not build");
        }
        Ok(())
    }

    fn run(&self, summary: &mut Summary) -> Done {
        let filters = || ["--"].into_iter().chain(self.found.filters.iter().map(String::as_str));
        if let Some(only) = &self.only {
            let test = self.cargo_test().args(self.selection()).args(filters());
            return summary.record(test, &format!("the tests of {only}"));
        }
        let mut programs = programs(&self.sh.root)?;
        if !self.found.servers {
            programs.remove(WITH_SERVERS);
            programs.remove(SUITE);
        }
        // Both wait most of the time. The output of the others is shown after the suite.
        let suite =
            programs.remove(SUITE).then(|| self.cargo_test().arg(format!("--test={SUITE}")));
        let others = self
            .cargo_test()
            .args(["--lib", "--bins"])
            .args(programs.iter().map(|name| format!("--test={name}")))
            .args(filters());
        thread::scope(|scope| {
            let others = scope.spawn(|| others.told());
            if let Some(suite) = suite {
                // Tests in containers skip themselves if LOCKTOPUS_SKIP_POD is set.
                summary.record(suite.args(filters()), "the suite")?;
            }
            let (passed, said) =
                others.join().unwrap_or_else(|_| fail!("they cannot be awaited"))?;
            summary.told(passed, &said, "tests of each crate");
            Done::Ok(())
        })?;
        summary.record(self.cargo_test().arg("--doc").args(filters()), "examples in the docs")?;
        summary.outcome("ran      unit and doc tests, and the memory backend");
        if self.found.servers {
            summary.outcome("ran      servers as child processes: every topology");
        }
        if self.found.containers {
            summary.outcome("ran      servers in containers: every topology and image, and the conformance suite on one of them");
        }
        Ok(())
    }
}

/// The names of the test programs. Cargo runs those of every package that have the name.
fn programs(root: &Path) -> Done<BTreeSet<String>> {
    let mut crates = vec![root.join("examples/backend-template")];
    for parent in ["crates", "testing"] {
        crates.extend(fs::read_dir(root.join(parent))?.flatten().map(|entry| entry.path()));
    }
    let entries =
        crates.iter().flat_map(|folder| fs::read_dir(folder.join("tests"))).flatten().flatten();
    let programs = entries.map(|entry| entry.path()).filter(|path| {
        path.extension().is_some_and(|end| end == "rs") || path.join("main.rs").is_file()
    });
    let names = programs.filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()));
    let found: BTreeSet<_> =
        names.filter(|name| name != "ui" && !NIGHTLY.contains(&name.as_str())).collect();
    // If no name is given, cargo runs none of them and still succeeds.
    if !found.contains(SUITE) {
        fail!("it is not known which integration tests can be run here");
    }
    Ok(found)
}

/// Keeps every core busy three times over, until this process ends.
fn burn(summary: &mut Summary) {
    let loops = 3 * cores();
    for _ in 0..loops {
        thread::spawn(|| {
            loop {
                std::hint::black_box(());
            }
        });
    }
    summary.outcome(&format!("beside   {loops} busy loops on {} cores", cores()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{program, said, shell};

    #[test]
    fn what_is_asked_for_must_be_known() {
        assert!(said(Options::of(&["--only".into(), "all".into()])).contains("not 'all'"));
        assert!(said(Options::of(&["--only".into()])).contains("not ''"));
        assert!(said(Options::of(&["--fast".into()])).contains("unknown option --fast"));
        assert_eq!(
            Options::of(&["--only".into(), NIGHTLY[0].into()]).unwrap().only.as_deref(),
            Some(NIGHTLY[0])
        );
    }

    #[test]
    fn test_programs_are_named() {
        let sh = shell();
        let names = programs(&sh.root).unwrap();
        let day = ["all", WITH_SERVERS, SUITE].iter().all(|name| names.contains(*name));
        assert!(day && NIGHTLY.iter().all(|name| !names.contains(*name)), "{names:?}");
        // Without a name cargo leaves out every integration test, and still succeeds.
        let empty = sh.scratch().unwrap().join("empty");
        fs::create_dir_all(empty.join("crates")).unwrap();
        fs::create_dir_all(empty.join("testing")).unwrap();
        assert!(said(programs(&empty)).contains("not known which integration tests"));
    }

    /// Runs the tests with a cargo that prints its arguments, and returns these.
    fn asked(only: Option<&str>, found: Found, confined: Option<&str>) -> String {
        let sh = shell();
        program(&sh, "cargo", "echo \"asked: $*\"");
        let tests = Tests {
            sh: &sh,
            only: only.map(str::to_owned),
            found,
            confined: confined.map(str::to_owned),
        };
        let mut summary = Summary::new(&sh);
        tests.run(&mut summary).unwrap();
        String::from_utf8(summary.log).unwrap()
    }

    #[test]
    fn tests_are_chosen_by_what_there_is() {
        let none = asked(None, Found::default(), None);
        assert!(
            none.contains("--lib --bins --test=all") && none.contains("--no-fail-fast --doc"),
            "{none}"
        );
        assert!(!none.contains("--test=suite") && !none.contains("--test=servers"), "{none}");
        let found = || Found {
            servers: true,
            containers: false,
            filters: vec!["--skip".into(), "one".into()],
        };
        let all = asked(None, found(), None);
        assert!(all.contains("--no-fail-fast --test=suite -- --skip one\n"), "{all}");
        assert!(all.contains("--test=servers") && all.contains("--doc -- --skip one\n"), "{all}");
        assert_eq!(all.lines().count(), 3, "{all}");
        let only = asked(Some("conformance_far"), found(), Some("/tools"));
        assert!(
            only.contains("--package locktopus-suite --test conformance_far -- --skip one"),
            "{only}"
        );
        assert!(
            only.contains("--config target.'cfg(all())'.runner = ['env', 'PATH=/tools']"),
            "{only}"
        );
    }

    /// If one of the two parallel runs fails, everything fails, and both outputs are shown.
    #[test]
    fn both_that_run_at_once_are_heard() {
        let sh = shell();
        program(
            &sh,
            "cargo",
            "echo \"test result: 1 passed; $*\"; case \"$*\" in *--lib*) exit 1 ;; esac",
        );
        let found = Found { servers: true, containers: false, filters: Vec::new() };
        let tests = Tests { sh: &sh, only: None, found, confined: None };
        let mut summary = Summary::new(&sh);
        tests.run(&mut summary).unwrap();
        assert_eq!(summary.failures, ["tests of each crate"]);
        assert_eq!(String::from_utf8_lossy(&summary.log).matches("1 passed;").count(), 3);
    }
}
