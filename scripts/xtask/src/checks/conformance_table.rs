//! The table of conformance.

use crate::cargo::build_example;
use crate::failure::{Done, fail, need};
use crate::shell::Shell;
use crate::{engine, tools};

pub(crate) const HELP: &str = "\
Makes docs/conformance.md, the table of who conforms, from runs of the conformance suite; or checks it.

Usage: scripts/conformance-table [--check] [--without-pods]

  (nothing)        runs the suite on every topology with servers as child processes and in
                   containers, and writes the table
  --check          runs nothing; fails if the table lacks a place or a kind, or shows a failure
  --without-pods   does without the servers in containers

LOCKTOPUS_CONFORMANCE_OUT=FILE   use, and append to, this file of results; a fresh one otherwise";

const TABLE: &str = "docs/conformance.md";

pub(crate) fn main(sh: &Shell, arguments: &[String]) -> Done {
    let (mut check, mut pods) = (false, true);
    for option in arguments {
        match option.as_str() {
            "--check" => check = true,
            "--without-pods" => pods = false,
            _ => fail!("unknown option {option}; --help shows what there is"),
        }
    }
    if !check {
        let results = run_suite(sh, pods)?;
        let program = build_example(sh, "conformance_table")?;
        sh.cmd(program).args(["render", &results, TABLE]).run()?;
    }
    let program = build_example(sh, "conformance_table")?;
    sh.cmd(program).args(["check", TABLE]).args((!pods).then_some("--without-pods")).run()
}

/// Runs the suite; returns the file of results.
fn run_suite(sh: &Shell, pods: bool) -> Done<String> {
    need(tools::server(sh), "no server program")?;
    let results = match sh.var("LOCKTOPUS_CONFORMANCE_OUT") {
        Some(file) => file,
        None => sh.scratch()?.join("conformance.jsonl").to_string_lossy().into_owned(),
    };
    sh.export("LOCKTOPUS_CONFORMANCE_OUT", &results);
    sh.unset("LOCKTOPUS_CONFORMANCE");
    // A failure shows in the table; the check after this one then fails.
    let tests = || sh.cmd("cargo").args(["test", "--all-features", "--no-fail-fast"]);
    tests().args(["--test=suite", "--", "conformance_"]).code()?;
    if pods {
        need(engine::containers(sh), "no containers")?;
        tests().arg("--test=conformance_images").code()?;
    }
    Ok(results)
}
