//! `.ci/nightly`: the parts that take too long for each change.

use std::fs;

use crate::checks::{book, features, fencing, oldest_rust, supply_chain};
use crate::failure::{Done, Failure, fail, need};
use crate::measure::{failover, soak};
use crate::shell::{Shell, say};
use crate::{Named, binaries, observe, product, proof, release, running, tools};

pub(crate) const HELP: &str = "\
Runs the checks that take too long for each change, at night and on otherwise idle machines. Run it from anywhere. It runs
every part even if others fail, and says at the end which failed.

Usage: .ci/nightly [--list | PART...]

  (nothing)  every part, one after the other; takes longer than a night
  PART...    only these parts
  --list     runs nothing; prints the names of the parts, one a line, for separate jobs

  loaded        every test of the product twice beside busy loops, three for each core
  far           the conformance suite at every distance, through each client alone
  images        the conformance suite in containers, on every image and topology
  neighbours    node-redlock, redsync, redis-py and nine more libraries, in both roles
  ui            what the compiler says about a wrong #[locked]
  sequences     10^4 random sequences of calls of each kind, on memory and on a server, different ones every night
  proof         every test of proof/
  simulation    20,000 random schedules of the shipped client on simulated servers, different ones every night
  planted       planted faults and wrong scripts, which the simulator must notice
  protocols     every state of the three protocols
  fidelity      10^5 calls of each script on the modelled server and on a real one
  fuzz          10^6 mutations of the corpus for each target, different ones every night
  scripts       every small mutation of the Lua, which must fail a test
  rust-core     cargo-mutants on validity, leases and watchdog
  rust-quorum   cargo-mutants on the quorum
  reverts       reverts fixes, whose tests must then fail
  harness       every test of the harness, and the faults of scripts/failover
  nemesis       random faults that overlap (hours)
  soak          100,000 held locks, 10,000 waiters and 10,000 acquisitions a second for 20 minutes; nothing may be left
  recipes       the example programs, on servers, with PostgreSQL
  fencing       the statements of docs/fencing.md on SQLite and PostgreSQL
  book          builds the book with mdBook
  features      every published crate with every set of its features
  tarballs      the tests in the tarballs, run from the unpacked tarballs
  supply-chain  licences, sources, and newly known vulnerabilities
  oldest-rust   builds every published crate with the oldest supported Rust
  metrics       runs the queries of the dashboard and the alert rules on a real Prometheus
  package       static programs, .deb and container image; tries each

Each result is a line of target/nightly/table.md, with the commit, the time it took and the date. A release quotes it.";

pub(crate) const TABLE: &str = "target/nightly/table.md";

/// Each part, and what it does in a shell of its own.
pub(crate) const PARTS: &[Named] = &[
    ("loaded", |sh| test(sh, &["--loaded"]).and_then(|()| test(sh, &["--loaded"]))),
    ("far", |sh| test(sh, &["--only", "conformance_far", "--far"])),
    ("images", |sh| test(sh, &["--only", "conformance_images"])),
    ("neighbours", |sh| test(sh, &["--only", "neighbour_libraries"])),
    ("ui", |sh| sh.cargo("test").args(["--package", "locktopus-macros", "--test", "ui"]).run()),
    ("sequences", sequences),
    ("proof", |sh| prove(sh, &["tests"])),
    ("simulation", |sh| prove(sh, &["simulation"])),
    ("planted", |sh| prove(sh, &["planted"])),
    ("protocols", |sh| prove(sh, &["protocols"])),
    ("fidelity", |sh| prove(sh, &["fidelity", "100000"])),
    ("fuzz", |sh| prove(sh, &["fuzz"])),
    ("scripts", |sh| prove(sh, &["scripts"])),
    ("rust-core", |sh| prove(sh, &["rust", "core", "--timeout-multiplier", "5", "--jobs", "2"])),
    ("rust-quorum", |sh| {
        prove(sh, &["rust", "quorum", "--timeout-multiplier", "5", "--jobs", "2"])
    }),
    ("reverts", |sh| prove(sh, &["reverts"])),
    ("harness", harness),
    ("nemesis", nemesis),
    ("soak", |sh| soak::main(sh, &words(&["--minutes", "20", "--out", "target/soak"]))),
    ("recipes", recipes),
    ("fencing", |sh| fencing::main(sh, &[])),
    ("book", |sh| book::main(sh, &[])),
    ("features", |sh| features::main(sh, &words(&["--every"]))),
    ("tarballs", |sh| release::main(sh, &words(&["--dry-run", "--tests"]))),
    ("supply-chain", |sh| supply_chain::main(sh, &[])),
    ("oldest-rust", |sh| oldest_rust::main(sh, &[])),
    ("metrics", |sh| observe::main(sh, &[])),
    ("package", |sh| binaries::main(sh, &[])),
];

pub(crate) fn main(sh: &Shell, arguments: &[String]) -> Done {
    if arguments.iter().any(|option| option == "--list") {
        PARTS.iter().for_each(|(part, _)| say(part));
        return Ok(());
    }
    for asked in arguments {
        if !PARTS.iter().any(|(part, _)| part == asked) {
            fail!("there is no part '{asked}'; --list shows them");
        }
    }
    if sh.var("CI").is_none() {
        sh.export("CI", "true");
    }
    // Downloads count too.
    sh.export("LOCKTOPUS_REQUIRE_ALL", "1");
    let mut failed = Vec::new();
    for (part, run) in PARTS
        .iter()
        .filter(|(part, _)| arguments.is_empty() || arguments.iter().any(|asked| asked == part))
    {
        say(format!("\n== {part}"));
        if !noted(sh, part, *run)? {
            failed.push(*part);
        }
    }
    say(format!("\n{}", fs::read_to_string(sh.root.join(TABLE))?.trim_end()));
    if !failed.is_empty() {
        fail!("FAILED: {}", failed.join(" "));
    }
    say("all parts passed");
    Ok(())
}

/// Runs a part and notes its result. Returns whether it passed.
fn noted(sh: &Shell, part: &str, run: fn(&Shell) -> Done) -> Done<bool> {
    let own = sh.again("nightly");
    let outcome = run(&own);
    if let Some(code) = running::interrupted() {
        return Err(Failure::Code(code));
    }
    if let Err(Failure::Said(words) | Failure::Missing(words)) = &outcome {
        sh.warn(words);
    }
    let file = sh.root.join(TABLE);
    fs::create_dir_all(file.parent().unwrap_or(&sh.root))?;
    let mut table = fs::read_to_string(&file).unwrap_or_default();
    if table.is_empty() {
        table = "| part | came of it | took | commit | date |\n|---|---|---|---|---|\n".to_owned();
    }
    let (came_of_it, minutes) =
        (if outcome.is_ok() { "passed" } else { "FAILED" }, (own.seconds() + 30) / 60);
    let commit = sh.cmd("git").args(["rev-parse", "--short", "HEAD"]).read()?;
    let date = sh.cmd("date").args(["-u", "+%F"]).read()?;
    table += &format!("| {part} | {came_of_it} | {minutes} min | {commit} | {date} |\n");
    fs::write(file, table)?;
    Ok(outcome.is_ok())
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn test(sh: &Shell, options: &[&str]) -> Done {
    product::main(&sh.again("test"), &words(options))
}

fn prove(sh: &Shell, level: &[&str]) -> Done {
    proof::main(sh, &words(level))
}

/// The date, as a number that differs every night.
pub(crate) fn today(sh: &Shell) -> Done<String> {
    sh.cmd("date").args(["-u", "+%Y%m%d"]).read()
}

fn sequences(sh: &Shell) -> Done {
    need(tools::server(sh), "no server program")?;
    sh.cargo("test")
        .args(["--all-features", "--test", "suite", "--", "sequences"])
        .env("LOCKTOPUS_SEQUENCES", "10000")
        .env("LOCKTOPUS_SEQUENCES_SEED", today(sh)?)
        .run()
}

fn harness(sh: &Shell) -> Done {
    need(tools::server(sh), "no server program")?;
    need(tools::clock_library(sh), "no libfaketime")?;
    need(tools::jdk(sh), "no JDK")?;
    sh.cargo("test").args(["--package", "bench-harness"]).run()?;
    failover::main(sh, &[])
}

fn nemesis(sh: &Shell) -> Done {
    let out = format!("target/nemesis-{}", today(sh)?);
    failover::main(sh, &words(&["--nemesis", "--keep-histories", "--out", &out]))
}

fn recipes(sh: &Shell) -> Done {
    need(tools::server(sh), "no server program")?;
    need(tools::postgres(sh), "no PostgreSQL")?;
    need(tools::jdk(sh), "no JDK")?;
    need(tools::redis_py(sh), "no redis-py")?;
    let manifest = ["--manifest-path", "examples/recipes/Cargo.toml"];
    let clippy = sh.cargo("clippy").arg("--all-targets").args(manifest);
    clippy.args(["--", "--deny", "warnings"]).run()?;
    sh.cargo("test").args(manifest).env("CARGO_TARGET_DIR", sh.root.join("target")).run()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{program, said, shell};

    #[test]
    fn every_part_is_explained() {
        for (part, _) in PARTS {
            assert!(HELP.contains(&format!("\n  {part} ")), "--help does not say what {part} is");
        }
        assert!(
            said(main(&shell(), &words(&["fuzz", "no-such-part"])))
                .contains("no part 'no-such-part'")
        );
    }

    /// A failed part is noted, and its exports do not reach the next part.
    #[test]
    fn what_came_of_a_part_is_a_line_of_the_table() {
        let real = shell();
        let sh = Shell::new(
            "nightly",
            real.scratch().unwrap(),
            real.scratch().unwrap(),
            std::collections::BTreeMap::new(),
        );
        sh.export("PATH", real.var("PATH").unwrap());
        program(&real, "git", "echo abc");
        program(&real, "date", "echo 2026-11-28");
        let fails: fn(&Shell) -> Done = |sh| {
            sh.export("SEEN", "1");
            fail!("no")
        };
        assert_eq!(noted(&sh, "one", fails), Ok(false));
        assert_eq!(
            noted(&sh, "two", |sh| if sh.var("SEEN").is_none() { Ok(()) } else { fail!("seen") }),
            Ok(true)
        );
        let table = fs::read_to_string(sh.root.join(TABLE)).unwrap();
        assert!(table.ends_with("|---|\n| one | FAILED | 0 min | abc | 2026-11-28 |\n| two | passed | 0 min | abc | 2026-11-28 |\n"));
    }
}
