//! The commands behind `scripts/*`, `.ci/*` and `proof/run`. Each of those scripts is a door: it
//! calls `scripts/xtask/door`, which builds this program and runs the command of the same name.

mod binaries;
mod cargo;
mod checks;
mod ci;
mod engine;
mod failure;
mod files;
#[cfg(test)]
mod made_up;
mod measure;
mod nightly;
mod observe;
mod packages;
mod product;
mod proof;
mod release;
mod running;
mod screenshots;
mod shell;
mod tools;

use std::env;
use std::process::ExitCode;

use checks::{book, features, fencing, layers, oldest_rust, prose, sizes, supply_chain};
use failure::{Done, Failure, fail};
use measure::{bench, failover, harness, performance, soak};
use shell::{Shell, say};

/// The name of a step or part, and its function.
type Named = (&'static str, fn(&Shell) -> Done);

/// Runs a command with its options.
type Main = fn(&Shell, &[String]) -> Done;

/// The options of commands that take none, in the table of commands.
const NONE: bool = false;
const SOME: bool = true;

/// Each command's name, its `--help` text, whether it takes options, and its function.
const COMMANDS: &[(&str, &str, bool, Main)] = &[
    ("bench", bench::HELP, SOME, bench::main),
    ("book", book::HELP, SOME, book::main),
    ("check-fencing", fencing::HELP, NONE, fencing::main),
    ("check-layers", layers::HELP, NONE, layers::main),
    ("check-prose", prose::HELP, SOME, prose::main),
    ("check-sizes", sizes::HELP, NONE, sizes::main),
    ("failover", failover::HELP, SOME, failover::main),
    ("features", features::HELP, SOME, features::main),
    ("nightly", nightly::HELP, SOME, nightly::main),
    ("observe", observe::HELP, SOME, observe::main),
    ("oldest-rust", oldest_rust::HELP, NONE, oldest_rust::main),
    ("package", binaries::HELP, SOME, binaries::main),
    ("performance", performance::HELP, SOME, performance::main),
    ("proof", proof::HELP, SOME, proof::main),
    ("release", release::HELP, SOME, release::main),
    ("run", ci::HELP, NONE, ci::main),
    ("screenshots", screenshots::HELP, SOME, screenshots::main),
    ("soak", soak::HELP, SOME, soak::main),
    ("supply-chain", supply_chain::HELP, NONE, supply_chain::main),
    ("test", product::HELP, SOME, product::main),
];

fn main() -> ExitCode {
    let _undo = running::UndoAtEnd;
    let arguments: Vec<_> = env::args().skip(1).collect();
    let name = arguments.first().map_or("", String::as_str);
    let outcome = running::listen()
        .map_err(Failure::from)
        .and_then(|()| Shell::of_this_process(name))
        .and_then(|sh| {
            let outcome = call(&sh, name, arguments.get(1..).unwrap_or_default());
            if let Err(Failure::Said(words) | Failure::Missing(words)) = &outcome {
                sh.warn(words);
            }
            outcome
        });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Code(code)) => u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from),
        Err(_) => ExitCode::FAILURE,
    }
}

fn call(sh: &Shell, name: &str, options: &[String]) -> Done {
    let Some((_, help, takes_options, main)) = COMMANDS.iter().find(|command| command.0 == name)
    else {
        fail!(
            "there is no command '{name}'; there are {}",
            COMMANDS.iter().map(|command| command.0).collect::<Vec<_>>().join(", ")
        );
    };
    if options.iter().any(|option| option == "-h" || option == "--help") {
        say(help);
        match name {
            "bench" => say(format!("\n{}", harness::help(sh, "run")?)),
            "failover" | "soak" => say(format!("\n{}", harness::help(sh, name)?)),
            _ => {}
        }
        return Ok(());
    }
    match options {
        [first, ..] if !takes_options => fail!("unknown option {first}; there are none"),
        options => main(sh, options),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;

    /// Every command has a door, and every door leads to a command.
    #[test]
    fn doors_lead_to_commands() {
        let sh = made_up::shell();
        let mut led = BTreeSet::new();
        for file in ci::shell_files(&sh).unwrap() {
            assert!(shell::is_program(&file), "{} cannot be run", file.display());
            let text = fs::read_to_string(&file).unwrap();
            let Some((_, call)) = text.split_once("/xtask/door\" ") else {
                continue;
            };
            let (name, rest) = call.split_once(' ').unwrap();
            assert_eq!(rest, "\"$@\"\n", "{}", file.display());
            let own = file.file_name().unwrap().to_string_lossy().into_owned();
            assert!(
                own == name || (file.ends_with("proof/run") && name == "proof"),
                "{} calls {name}",
                file.display()
            );
            led.insert(name.to_owned());
        }
        assert_eq!(led, COMMANDS.iter().map(|command| command.0.to_owned()).collect());
    }

    #[test]
    fn who_asks_for_help_gets_it() {
        let sh = made_up::shell();
        sh.export("CARGO_TARGET_DIR", sh.scratch().unwrap().to_string_lossy());
        for (name, help, ..) in COMMANDS {
            assert_eq!(call(&sh, name, &["--help".to_owned()]), Ok(()));
            assert!(
                help.contains("scripts/") || help.contains(".ci/") || help.contains("proof/run"),
                "{name}"
            );
        }
        assert!(
            made_up::said(call(&sh, "check-sizes", &["x".to_owned()])).contains("unknown option x")
        );
        assert!(made_up::said(call(&sh, "no-such", &[])).contains("no command 'no-such'"));
    }

    /// Hosted jobs call scripts that exist, and set variables that the scripts know.
    #[test]
    fn hosted_jobs_call_what_there_is() {
        let sh = made_up::shell();
        let workflows = files::below(&sh.root.join(".github"), ".yml").unwrap();
        let text: String = workflows.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
        let words = |start: &str, fits: fn(char) -> bool| {
            let rests = text.split(start).skip(1).map(|rest| {
                format!("{start}{}", rest.split(|letter| !fits(letter)).next().unwrap())
            });
            rests.collect::<BTreeSet<_>>()
        };
        let name = |letter: char| letter.is_ascii_lowercase() || letter == '-';
        let called =
            words("scripts/", name).into_iter().chain(words(".ci/", name)).collect::<BTreeSet<_>>();
        assert!(called.len() > 3, "{called:?}");
        for file in called {
            assert!(
                shell::is_program(&sh.root.join(&file)),
                "a job calls {file}, which is no program"
            );
        }
        let sources = files::below(&sh.root.join("scripts/xtask/src"), ".rs").unwrap();
        let known: String = sources.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
        for variable in words("LOCKTOPUS_", |letter| letter.is_ascii_uppercase() || letter == '_') {
            assert!(known.contains(&variable), "a job sets {variable}, of which no script knows");
        }
        // In this file, lines that begin with `//` are comments.
        let container =
            fs::read_to_string(sh.root.join(".devcontainer/devcontainer.json")).unwrap();
        let lines: Vec<_> =
            container.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let container: serde_json::Value = serde_json::from_str(&lines.join("\n")).unwrap();
        assert!(container["image"].is_string() && container["postCreateCommand"].is_string());
    }
}
