//! Faults on real servers.

use super::harness;
use super::options::Options;
use crate::failure::{Done, fail, need, why_missing};
use crate::shell::{Shell, say};
use crate::{engine, tools};

pub(crate) const HELP: &str = "\
Causes real faults on real servers under lock load, and says what happened to the locks.

Usage: scripts/failover [OPTION...]

Without options it runs the quick matrix, about thirteen minutes. Options go to `locktopus-bench
failover`; `--help` lists them. Examples:

  scripts/failover --full --failovers 200
  scripts/failover --scenario kill-primary --topology sentinel
  scripts/failover --provider pod --image valkey/valkey:8.1

For servers of your own there is `locktopus failover watch`.

Servers are child processes of a redis-server or valkey-server program. If there is none, it is
installed from the system's packages if permitted; else servers run in containers. Split brain
needs containers (--provider pod) with NET_ADMIN, which can be cut off from each other. Steps of
a server's clock need processes and libfaketime.

LOCKTOPUS_SERVER_BIN=PATH   use this server program
LOCKTOPUS_FAKETIME=PATH     use this libfaketime.so.1 to set servers' clocks
LOCKTOPUS_NO_INSTALL=1      install nothing";

pub(crate) fn main(sh: &Shell, arguments: &[String]) -> Done {
    let mut options = Options::of(arguments)?;
    if !options.has("--list") {
        options.provider = Some(choose_provider(sh, options.provider)?);
    }
    let provider = options.provider.clone().unwrap_or_default();
    if !provider.is_empty() {
        options.kept.extend(["--provider".to_owned(), provider.clone()]);
    }
    let program = harness::build(sh, &provider, &options.kept)?;
    let out = options.out(sh, "failover-results")?;
    harness::run(sh, &program, "failover", &options.kept, Some(&out))
}

/// The requested provider must work. Without a request, this chooses one.
fn choose_provider(sh: &Shell, asked: Option<String>) -> Done<String> {
    let mut provider = asked.clone().unwrap_or_else(|| "plain".to_owned());
    if provider == "plain" {
        match why_missing(tools::server(sh))? {
            None => ensure_clock(sh)?,
            Some(why) if asked.is_some() => fail!("no server program: {why}"),
            Some(why) => {
                say(format!("no server program: {why}; trying containers"));
                need(engine::containers(sh), "neither a server program nor containers")?;
                provider = "pod".to_owned();
            }
        }
    } else if provider == "pod" {
        need(engine::containers(sh), "no containers")?;
    } else {
        fail!("--provider must be plain or pod");
    }
    Ok(provider)
}

/// Without the library one scenario is skipped, and the report says so.
fn ensure_clock(sh: &Shell) -> Done {
    if let Some(why) = why_missing(tools::clock_library(sh))? {
        say(format!("no clock that can be set: {why}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::harness::made_up_harness::{asked, with_code, without_servers};
    use super::*;
    use crate::failure::Failure;
    use crate::made_up::said;

    #[test]
    fn codes_of_the_harness_are_those_of_the_script() {
        for code in [1, 5, 6] {
            assert_eq!(main(&with_code(code), &["--list".into()]), Err(Failure::Code(code)));
        }
        let sh = with_code(0);
        assert_eq!(main(&sh, &[]), Ok(()));
        assert!(asked(&sh).contains("failover --provider plain --out"));
    }

    /// Without servers the command fails before it builds anything.
    #[test]
    fn nothing_is_run_without_servers() {
        let sh = without_servers();
        assert!(said(main(&sh, &[])).contains("which is not a program"));
        sh.unset("LOCKTOPUS_SERVER_BIN");
        if tools::server(&sh).is_err() {
            assert!(
                said(main(&sh, &[]))
                    .contains("neither a server program nor containers: LOCKTOPUS_NO_INSTALL")
            );
        }
        assert!(said(main(&sh, &["--provider=memory".into()])).contains("plain or pod"));
        assert_eq!(asked(&sh), "");
    }
}
