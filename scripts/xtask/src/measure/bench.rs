//! Contention on real servers.

use super::harness;
use super::options::Options;
use crate::failure::{Done, need, why_missing};
use crate::shell::{Shell, cores, say};
use crate::{engine, tools};

pub(crate) const HELP: &str = "\
Measures locks on real servers, and prints where the report is.

Usage: scripts/bench [OPTION...]

Without options it runs the quick matrix: the memory backend, and both clients on a standalone
server, behind Sentinel and on a cluster. On two cores that takes nine minutes from a fresh clone:
four to build the harness, five to measure. Options go to `locktopus-bench run`; `--help` lists
them. Examples:

  scripts/bench --full
  scripts/bench --scenario hot-lock --workers 32
  scripts/bench --provider pod
  scripts/bench --no-pin

On two cores or more, servers run on one and workers on another, and a process of idle priority
keeps both awake. Otherwise round trips would differ by a multiple between rounds. `--no-pin`
turns both off.

Servers are child processes of a redis-server or valkey-server program. If there is none, it is
installed from the system's packages if permitted; else servers run in containers; else only the
memory backend is measured, which is a failure unless you asked for `--provider memory`.

LOCKTOPUS_SERVER_BIN=PATH   use this server program
LOCKTOPUS_NO_INSTALL=1      install nothing";

pub(crate) fn main(sh: &Shell, arguments: &[String]) -> Done {
    measure(sh, Options::of(arguments)?, cores())
}

fn measure(sh: &Shell, mut options: Options, cores: usize) -> Done {
    if options.has("--url") {
        say("measuring servers that run already: none are started");
    } else {
        let provider = choose_provider(sh, options.provider.take())?;
        options.kept.extend(["--provider".to_owned(), provider.clone()]);
        options.provider = Some(provider);
    }
    let why = why_not_pinned(sh, &options, cores);
    if let Some(why) = why {
        say(format!("processes are not pinned: {why}"));
    } else {
        say(
            "servers on one core, workers on another, both kept awake (--no-pin leaves them to the system)",
        );
        options.kept.push("--pin".to_owned());
    }
    let program =
        harness::build(sh, options.provider.as_deref().unwrap_or_default(), &options.kept)?;
    let out = options.out(sh, "bench-results")?;
    harness::run(sh, &program, "run", &options.kept, Some(&out))
}

/// The requested provider must work. Without a request, this chooses one.
fn choose_provider(sh: &Shell, asked: Option<String>) -> Done<String> {
    match asked.as_deref() {
        Some("plain") => need(tools::server(sh), "no server program").map(drop)?,
        Some("pod") => need(engine::containers(sh), "no containers")?,
        None | Some("" | "auto") => {
            let Some(why) = why_missing(tools::server(sh))? else {
                return Ok("plain".to_owned());
            };
            say(format!("no server program: {why}; trying containers"));
            let Some(why) = why_missing(engine::containers(sh))? else {
                return Ok("pod".to_owned());
            };
            say(format!("no containers: {why}"));
            say(
                "ONLY THE MEMORY BACKEND can be measured: nothing here says anything about Redis or Valkey.",
            );
            say(
                "That fails at the end, because nobody asked to do without servers: --provider memory does",
            );
            return Ok("auto".to_owned());
        }
        Some(_) => {}
    }
    Ok(asked.unwrap_or_default())
}

/// Why processes are not pinned. Servers of the user's own stay where they are.
fn why_not_pinned(sh: &Shell, options: &Options, cores: usize) -> Option<&'static str> {
    if !options.pin {
        Some("as --no-pin says")
    } else if options.has("--url") || options.provider.as_deref() != Some("plain") {
        Some("only servers that are processes of this run can be placed")
    } else if cores < 2 {
        Some("there is one core")
    } else if !sh.have("chrt") || !sh.have("taskset") {
        Some("chrt and taskset (package util-linux) are missing")
    } else if !sh.cmd("chrt").args(["--idle", "0", "true"]).works() {
        Some("this user may not start a process of idle priority")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::harness::made_up_harness::{asked, with_code, without_servers};
    use super::*;
    use crate::failure::Failure;
    use crate::made_up::{program, said};

    /// The script ends with the exit code of the harness.
    #[test]
    fn codes_of_the_harness_are_those_of_the_script() {
        for code in [1, 5, 6] {
            assert_eq!(
                main(&with_code(code), &["--out".into(), "x".into()]),
                Err(Failure::Code(code))
            );
        }
        assert_eq!(main(&with_code(0), &[]), Ok(()));
    }

    /// The call of the harness on a machine with `cores` cores.
    fn run_on(cores: usize, options: &[&str], chrt: &str) -> (String, Option<&'static str>) {
        let sh = with_code(0);
        program(&sh, "taskset", "");
        program(&sh, "chrt", chrt);
        program(&sh, "docker", "");
        program(&sh, "timeout", "");
        let options: Vec<_> = options.iter().map(|option| (*option).to_owned()).collect();
        let mut read = Options::of(&options).unwrap();
        measure(&sh, Options::of(&options).unwrap(), cores).unwrap();
        read.provider = read.provider.or_else(|| Some("plain".to_owned()));
        let run = asked(&sh).lines().find(|line| line.starts_with("run ")).unwrap().to_owned();
        (run, why_not_pinned(&sh, &read, cores))
    }

    /// Pinning is the default, because unpinned round trips vary by a multiple between rounds.
    /// Where it is impossible, the command says why.
    #[test]
    fn processes_are_pinned_where_that_is_possible() {
        let (run, why) = run_on(2, &[], "");
        assert!(run.starts_with("run --provider plain --pin --out ") && why.is_none(), "{run}");
        for (cores, options, chrt, reason) in [
            (1, [].as_slice(), "", "there is one core"),
            (2, &["--no-pin"], "", "as --no-pin says"),
            (2, &["--provider=pod"], "", "only servers that are processes of this run"),
            (2, &["--url=redis://192.0.2.1"], "", "only servers that are processes of this run"),
            (2, &[], "exit 1", "this user may not start a process of idle priority"),
        ] {
            let (run, why) = run_on(cores, options, chrt);
            assert!(!run.contains("--pin") && why.unwrap().starts_with(reason), "{run} {why:?}");
        }
    }

    /// Without servers the harness still runs, and fails unless `--provider memory` is given.
    #[test]
    fn without_servers_the_harness_decides() {
        let sh = without_servers();
        assert!(said(main(&sh, &[])).contains("which is not a program"));
        assert_eq!(asked(&sh), "");
        sh.unset("LOCKTOPUS_SERVER_BIN");
        if tools::server(&sh).is_err() {
            assert_eq!(main(&sh, &[]), Ok(()));
            assert!(asked(&sh).contains("run --provider auto --out"));
        }
    }
}
