//! Fills the parts of the model that describe machine, build and run rather than measurements.
//!
//! What cannot be found out becomes `unknown`: a missing file must not stop a measurement.

mod machine;
mod revision;

pub use machine::environment;
pub use revision::STATUS_OF_WHAT_IS_BUILT;

use std::time::SystemTime;

use super::{Harness, Run};

/// This build of the harness.
#[must_use]
pub fn harness() -> Harness {
    Harness {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        git_describe: revision::revision(),
        rust_version: env!("LOCKTOPUS_BENCH_RUSTC_VERSION").to_owned(),
        build_profile: env!("LOCKTOPUS_BENCH_PROFILE").to_owned(),
    }
}

/// A run of `scenario` that begins now, with the arguments of this process.
#[must_use]
pub fn run(scenario: &str, seed: u64, rounds: u32) -> Run {
    let started_at = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let stamp: String = started_at
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect();
    Run {
        id: format!("{scenario}-{stamp}"),
        started_at,
        seed,
        command_line: std::env::args().skip(1).map(|text| redact(&text)).collect(),
        scenario: scenario.to_owned(),
        rounds,
    }
}

/// Reports are published: user and password of a URL stay out of them.
fn redact(argument: &str) -> String {
    let Some((scheme, rest)) = argument.split_once("://") else {
        return argument.to_owned();
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    match authority.rsplit_once('@') {
        Some((secret, _)) => format!("{scheme}://***{}", &rest[secret.len()..]),
        None => argument.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_named_after_scenario_and_second() {
        let run = run("smoke", 1, 3);
        assert!(
            run.id.starts_with("smoke-2") && run.id.ends_with('Z'),
            "{}",
            run.id
        );
        assert!(humantime::parse_rfc3339(&run.started_at).is_ok());
    }

    #[test]
    fn credentials_stay_out_of_reports() {
        let cases = [
            (
                "--url=redis://me:s3cret@host:1/0",
                "--url=redis://***@host:1/0",
            ),
            ("redis://:p@ss@host", "redis://***@host"),
            ("redis://host/?a=b@c", "redis://host/?a=b@c"),
            ("--rounds", "--rounds"),
        ];
        for (given, kept) in cases {
            assert_eq!(redact(given), kept);
        }
    }

    #[test]
    fn the_build_knows_its_compiler() {
        assert!(harness().rust_version.starts_with("rustc "));
    }
}
