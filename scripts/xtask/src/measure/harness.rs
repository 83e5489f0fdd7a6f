//! Builds and runs `locktopus-bench`, and prints its help.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cargo::Built;
use crate::failure::{Done, Failure};
use crate::shell::{Shell, say};

const PROGRAM: &str = "release/locktopus-bench";

/// Builds the harness for this provider and these options. A container client and certificates are
/// a third of the build, so they are included only if needed. The HTML report is always included,
/// because it is the purpose of the harness. One TLS library remains: rslock enables it together
/// with tokio (its feature `tokio-comp`).
pub(crate) fn build(sh: &Shell, provider: &str, options: &[String]) -> Done<PathBuf> {
    let (features, why) = features(provider, options);
    say(format!("building locktopus-bench, {why}"));
    say("  a release build: what a debug build measures means nothing");
    say(format!("  {}", why_to_build(sh, &sh.target().join(PROGRAM))));
    let begun = sh.seconds();
    let selection = [
        "--release",
        "--package",
        "bench-harness",
        "--bin",
        "locktopus-bench",
        "--no-default-features",
        "--features",
    ];
    let built = Built::by(sh.cmd("cargo").arg("build").args(selection).arg(features))?;
    let program = built.program("locktopus-bench")?;
    let took = sh.seconds() - begun;
    say(format!(
        "  {} packages built in {} m {} s: {}",
        built.count(),
        took / 60,
        took % 60,
        program.display()
    ));
    Ok(program)
}

fn features(provider: &str, options: &[String]) -> (&'static str, &'static str) {
    let tls = |word: &String| ["tls", "rediss", "valkeys"].iter().any(|part| word.contains(part));
    if provider == "pod" {
        ("peers,pod,tls", "with the container client and TLS, for servers in containers")
    } else if options.iter().any(tls) {
        ("peers,tls", "with TLS, without the container client")
    } else {
        (
            "peers",
            "for servers as processes; without the container client and TLS, which nothing here asks for",
        )
    }
}

/// Why there is something to build, judging by what the last build left.
fn why_to_build(sh: &Shell, program: &Path) -> String {
    let Ok(made) = fs::metadata(program).and_then(|about| about.modified()) else {
        return "there is no program yet: it and everything it needs is built, some minutes on a machine with two cores".to_owned();
    };
    // Cargo leaves the list of sources beside the program.
    let sources = fs::read_to_string(program.with_extension("d")).unwrap_or_default();
    let sources = sources.split_once(": ").map_or("", |(_, files)| files).split_whitespace();
    let newer = |file: &&str| {
        fs::metadata(file).and_then(|about| about.modified()).is_ok_and(|changed| changed > made)
    };
    let changed: Vec<_> = sources.filter(newer).collect();
    let Some(first) = changed.first() else {
        return "no source has changed since the last build".to_owned();
    };
    let first =
        Path::new(first).strip_prefix(&sh.root).unwrap_or_else(|_| first.as_ref()).display();
    let more =
        if changed.len() > 1 { format!(" and {} more", changed.len() - 1) } else { String::new() };
    format!(
        "sources have changed since the last build: {first}{more}; what needs them is built again"
    )
}

/// Runs a command of the harness where the script was called, and ends with its exit code.
pub(crate) fn run(
    sh: &Shell,
    program: &Path,
    command: &str,
    options: &[String],
    out: Option<&Path>,
) -> Done {
    let harness = sh.cmd(program).arg(command).args(options).dir(&sh.from);
    let harness = match out {
        Some(out) => harness.arg("--out").arg(out),
        None => harness,
    };
    let code = harness.code()?;
    if let Some(report) = out.map(|out| out.join("report.html")).filter(|report| report.is_file()) {
        say(format!("report: {}", report.display()));
    }
    if code == 0 {
        return Ok(());
    }
    sh.warn(format!("locktopus-bench ended with code {code}; its --help lists the codes"));
    Err(Failure::Code(code))
}

/// The help of a command of the harness, if it is built: asking for help must not take minutes.
pub(crate) fn help(sh: &Shell, command: &str) -> Done<String> {
    let program = sh.target().join(PROGRAM);
    if program.is_file() {
        return sh.cmd(program).args([command, "--help"]).read();
    }
    Ok(format!(
        "The options of `locktopus-bench {command}`, which is not built yet, after some minutes of building:\n  \
         cargo run --release --package bench-harness --bin locktopus-bench -- {command} --help"
    ))
}

#[cfg(test)]
pub(super) mod made_up_harness {
    use super::*;
    use crate::made_up::{program, shell};

    /// A machine with a server, and a cargo that "builds" a harness. The harness notes its
    /// arguments and exits with this code.
    pub(crate) fn with_code(code: i32) -> Shell {
        let sh = shell();
        let asked = sh.scratch().unwrap().join("asked");
        let harness =
            program(&sh, "harness", &format!("echo \"$*\" >>{}; exit {code}", asked.display()));
        let built = format!(
            r#"echo "cargo $*" >>{}; echo '{{"target":{{"name":"locktopus-bench"}},"executable":"{}"}}'"#,
            asked.display(),
            harness.display()
        );
        program(&sh, "cargo", &built);
        program(&sh, "date", "echo now");
        let server = program(&sh, "server", "echo Redis server v=7.0.15");
        sh.export("LOCKTOPUS_SERVER_BIN", server.to_string_lossy());
        sh.export("CARGO_TARGET_DIR", sh.scratch().unwrap().join("target").to_string_lossy());
        sh.export("LOCKTOPUS_NO_INSTALL", "1");
        sh
    }

    /// The same without servers and containers.
    pub(crate) fn without_servers() -> Shell {
        let sh = with_code(0);
        let nowhere = program(&sh, "server", "exit 1");
        std::fs::remove_file(nowhere).unwrap();
        sh
    }

    /// The calls of cargo and of the harness.
    pub(crate) fn asked(sh: &Shell) -> String {
        fs::read_to_string(sh.scratch().unwrap().join("asked")).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::made_up_harness::{asked, with_code};
    use super::*;

    /// Each provider gets only the features that it needs.
    #[test]
    fn only_what_is_needed_is_built() {
        for (provider, options, features) in [
            ("plain", [].as_slice(), "peers"),
            ("plain", &["--url", "rediss://192.0.2.1"], "peers,tls"),
            ("pod", &[], "peers,pod,tls"),
        ] {
            let sh = with_code(0);
            let options: Vec<_> = options.iter().map(|option| (*option).to_owned()).collect();
            assert!(build(&sh, provider, &options).unwrap().ends_with("harness"));
            let said = asked(&sh);
            assert!(
                said.contains(&format!(
                    "--no-default-features --features {features} --message-format"
                )),
                "{said}"
            );
        }
    }

    #[test]
    fn it_says_why_there_is_something_to_build() {
        let sh = with_code(0);
        let program = sh.scratch().unwrap().join("built");
        let source = sh.scratch().unwrap().join("source.rs");
        assert!(why_to_build(&sh, &program).starts_with("there is no program yet"));
        fs::write(&source, "").unwrap();
        fs::write(&program, "").unwrap();
        fs::write(
            program.with_extension("d"),
            format!("{}: {s} {s}\n", program.display(), s = source.display()),
        )
        .unwrap();
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
        fs::File::options().write(true).open(&program).unwrap().set_modified(later).unwrap();
        assert_eq!(why_to_build(&sh, &program), "no source has changed since the last build");
        fs::File::options()
            .write(true)
            .open(&source)
            .unwrap()
            .set_modified(later + std::time::Duration::from_secs(1))
            .unwrap();
        assert!(
            why_to_build(&sh, &program)
                .contains("source.rs and 1 more; what needs them is built again")
        );
    }

    #[test]
    fn who_asks_for_help_waits_for_no_build() {
        let sh = with_code(0);
        assert!(
            help(&sh, "soak").unwrap().contains("`locktopus-bench soak`, which is not built yet")
        );
        assert_eq!(asked(&sh), "");
    }
}
