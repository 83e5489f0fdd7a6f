//! The levels of proof: `proof/run`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::cargo::Built;
use crate::failure::{Done, fail, need};
use crate::nightly::today;
use crate::shell::{Cmd, Shell, say, tail};
use crate::{engine, tools};

pub(crate) const HELP: &str = "\
Runs one level of proof; proof/README.md explains the levels. Run it from anywhere.

Usage: proof/run LEVEL [OPTION...]

  moment        the checks of every change: tests of the modelled server and the simulator, scripts on a real server
  tests         every test of this workspace
  simulation N  N random schedules of the shipped client on simulated servers, different ones every day
  planted       plants faults and wrong scripts in the simulator, which must notice them
  protocols     every state of the three protocols, including the bounds that take minutes
  fidelity N    compares N calls of each script on the modelled server and on a real one; a server that differs must be noticed
  fuzz N        N mutations of the stored corpus for each target
  scripts       every small mutation of the Lua must fail a test; takes the options of `gate scripts`
  rust CRATE    cargo-mutants on validity and leases (core) or on the quorum; passes options on
  reverts       reverts each fix of gate/reverts.toml, whose test must then fail";

/// Tests that run scripts in their own process, the cheapest first.
const OF_SCRIPTS: [&str; 8] =
    ["direct", "edges", "precise", "multitude", "queue_life", "neighbours", "executed", "deaf"];

pub(crate) fn main(sh: &Shell, arguments: &[String]) -> Done {
    let Some((level, options)) = arguments.split_first() else {
        say(HELP);
        return Ok(());
    };
    // Both workspaces share a target folder, so their common dependencies are built once.
    sh.export("CARGO_TARGET_DIR", sh.target().to_string_lossy());
    let number = |otherwise: &str| options.first().cloned().unwrap_or_else(|| otherwise.to_owned());
    match level.as_str() {
        "moment" => {
            server(sh)?;
            if sh.var("LOCKTOPUS_SKIP_POD").is_none() {
                sh.export(
                    "LOCKTOPUS_SKIP_POD",
                    "servers in containers are compared by proof/run fidelity",
                );
            }
            let selection =
                ["--package", "locktopus-model", "--package", "locktopus-simulator", "--test", "*"];
            tests(sh).args(selection).args(["--", "--skip", "mutants_of_scripts_are_noticed"]).run()
        }
        "tests" => {
            servers(sh)?;
            tests(sh).args(options).run()
        }
        "simulation" => simulator(sh)
            .arg("simulation::")
            .env("LOCKTOPUS_SIM_SCHEDULES", number("20000"))
            .env("LOCKTOPUS_SIM_FROM", today(sh)? + "00000")
            .run(),
        "planted" => simulator(sh).args(["planted::", "script_mutants::", "witnessed::"]).run(),
        "protocols" => {
            tests(sh).args(["--package", "locktopus-proofs"]).env("LOCKTOPUS_PROOFS", "all").run()
        }
        "fidelity" => fidelity(sh, &number("200")),
        "fuzz" => tests(sh)
            .args(["--test", "fuzz"])
            .env("LOCKTOPUS_FUZZ", number("1000000"))
            .env("LOCKTOPUS_FUZZ_SEED", today(sh)?)
            .run(),
        "scripts" => gate_scripts(sh, options),
        "rust" => gate_rust(sh, options),
        "reverts" => {
            server(sh)?;
            let gate = sh.cargo("run").args([
                "--quiet",
                "--manifest-path",
                "proof/Cargo.toml",
                "--bin",
                "gate",
                "--",
                "--root",
            ]);
            gate.arg(&sh.root).arg("reverts").args(options).run()
        }
        _ => fail!("there is no level '{level}'; --help shows them"),
    }
}

fn of_proof(sh: &Shell, command: &str) -> Cmd {
    sh.cargo(command).args(["--manifest-path", "proof/Cargo.toml", "--all-features"])
}

fn tests(sh: &Shell) -> Cmd {
    of_proof(sh, "test")
}

/// The tests of the simulator; filters may follow.
fn simulator(sh: &Shell) -> Cmd {
    tests(sh).args(["--package", "locktopus-simulator", "--test", "all", "--"])
}

fn server(sh: &Shell) -> Done {
    need(tools::server(sh), "no server program").map(drop)
}

fn servers(sh: &Shell) -> Done {
    server(sh)?;
    if sh.var("LOCKTOPUS_SKIP_POD").is_none() {
        need(engine::containers(sh), "no containers")?;
    }
    Ok(())
}

fn fidelity(sh: &Shell, calls: &str) -> Done {
    servers(sh)?;
    let both = ["--test", "script_fidelity_topology", "--test", "script_fidelity_pod"];
    tests(sh).args(both).env("LOCKTOPUS_FIDELITY_CALLS", calls).run()?;
    notice_a_server_that_differs(sh)
}

/// A comparison that cannot fail proves nothing: it must notice a real server without HSET.
fn notice_a_server_that_differs(sh: &Shell) -> Done {
    let name = "each_script_does_what_it_does_on_a_real_server";
    let differs = sh.scratch()?.join("differs");
    let real = sh.var("LOCKTOPUS_SERVER_BIN").unwrap_or_default();
    fs::write(
        &differs,
        format!(
            "#!/bin/sh\n[ \"$1\" = --version ] || set -- \"$@\" --rename-command HSET \"\"\nexec \"{real}\" \"$@\"\n"
        ),
    )?;
    fs::set_permissions(&differs, fs::Permissions::from_mode(0o755))?;
    let test = tests(sh)
        .args(["--test", "script_fidelity_topology", "--", "--exact", name])
        .env("LOCKTOPUS_SERVER_BIN", &differs);
    let (passed, said) = test.told()?;
    if passed {
        fail!("{name} passed on a server that does not know HSET");
    }
    let Some((_, after)) = said.split_once("first, sent all at once") else {
        fail!("{name} did not say in what a server without HSET differs: {}", tail(&said, 5));
    };
    if !after.contains("command called from script") {
        fail!("{name} did not say in what a server without HSET differs: {}", tail(&said, 5));
    }
    say("a server that differs: noticed");
    Ok(())
}

fn gate_scripts(sh: &Shell, options: &[String]) -> Done {
    // Optimised: thousands of changes pay for a minute of compiling.
    let optimised = || {
        let crates = ["core", "memory", "protocol", "conformance", "gate"];
        crates.into_iter().flat_map(|name| {
            ["--config".to_owned(), format!("profile.dev.package.locktopus-{name}.opt-level=2")]
        })
    };
    let names = OF_SCRIPTS.map(|name| format!("--test={name}"));
    let built = Built::by(tests(sh).args(["--no-run", "--bins"]).args(names).args(optimised()))?;
    let gate =
        Built::by(of_proof(sh, "build").arg("--quiet").args(optimised()).args(["--bin", "gate"]))?
            .program("gate")?;
    let mut command = sh.cmd(gate).arg("--root").arg(&sh.root).arg("scripts");
    for name in OF_SCRIPTS {
        command = command.arg("--tests").arg(built.program(name)?);
    }
    command.args(options).run()
}

fn gate_rust(sh: &Shell, arguments: &[String]) -> Done {
    let (name, options) = match arguments {
        [name, rest @ ..] if name == "core" || name == "quorum" => (name, rest),
        _ => fail!(
            "rust needs core or quorum, not '{}'",
            arguments.first().map_or("", String::as_str)
        ),
    };
    if !sh.cmd("cargo").args(["mutants", "--version"]).works()
        && sh.cmd("cargo").args(["install", "--quiet", "--locked", "cargo-mutants"]).code()? != 0
    {
        fail!("cargo-mutants is missing and cannot be installed");
    }
    sh.unset("CARGO_TARGET_DIR");
    let config = format!("proof/mutants-{name}.toml");
    let packages: &[&str] = match name.as_str() {
        "core" => &["--package=locktopus-contract", "--package=locktopus-core"],
        _ => &["--package=locktopus-quorum"],
    };
    let mutants = sh.cmd("cargo").args(["mutants", "--config", &config, "--all-features"]);
    mutants.args(packages).args(["--output", "target"]).args(options).run()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{program, said, shell};

    #[test]
    fn levels_and_crates_must_be_known() {
        let words =
            |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert!(said(main(&shell(), &words(&["all"]))).contains("no level 'all'"));
        assert!(said(main(&shell(), &words(&["rust", "memory"]))).contains("not 'memory'"));
    }

    /// The result for a server that differs, with a cargo that runs this script.
    fn noticed(script: &str) -> Done {
        let sh = shell();
        program(&sh, "cargo", script);
        notice_a_server_that_differs(&sh)
    }

    #[test]
    fn a_comparison_must_say_what_differs() {
        assert!(said(noticed("exit 0")).contains("passed on a server that does not know HSET"));
        assert!(
            said(noticed("echo broken; exit 1"))
                .contains("did not say in what a server without HSET differs: broken")
        );
        assert_eq!(
            noticed("echo 'first, sent all at once: command called from script'; exit 1"),
            Ok(())
        );
    }
}
