//! Fills in the parts of the model that describe machine, build and run rather than measurements.
//!
//! A fact that cannot be determined becomes `unknown`: a missing file must not stop a measurement.

mod machine;
mod revision;

pub use machine::environment;

use std::time::SystemTime;

use locktopus::url::BackendUrl;

use super::{Harness, Run};

const URL_FLAG: &str = "--url";

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
        command_line: redacted(std::env::args().skip(1)),
        scenario: scenario.to_owned(),
        rounds,
    }
}

/// Reports are published, so their URLs are redacted as in messages.
fn redacted(arguments: impl Iterator<Item = String>) -> Vec<String> {
    let mut is_url = false;
    let redact = |argument: String| {
        let was_url = std::mem::replace(&mut is_url, argument == URL_FLAG);
        match argument.split_once('=') {
            Some((URL_FLAG, url)) => format!("{URL_FLAG}={}", shown(url)),
            _ if was_url || argument.contains("://") => shown(&argument),
            _ => argument,
        }
    };
    arguments.map(redact).collect()
}

fn shown(url: &str) -> String {
    let parsed = url.parse::<BackendUrl>();
    parsed.map_or_else(|error| error.url, |url| url.to_string())
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
        let kept = |given: &[&str]| redacted(given.iter().map(ToString::to_string)).join(" ");
        for (given, expected) in [
            (
                &["--url=redis://me:s3cret@host:1/0"][..],
                "--url=redis://***@host:1/0",
            ),
            (
                &["--url", "redis://:p@s3cret@host", "--rounds", "3"],
                "--url redis://***@host --rounds 3",
            ),
            (
                &["redis://host/0?client=fred"],
                "redis://host/0?client=fred",
            ),
            (&["--url=h:6380,password=s3cret,ssl=True"], "--url=***"),
            (&["--url", "h:6380,password=s3cret"], "--url ***"),
            (&["--url", "redis://h,password=s3cret"], "--url redis://***"),
            (
                &["--url=redis-sentinel://h/mymaster;password=s3cret"],
                "--url=redis-sentinel://h***",
            ),
            (&["--url", "redis://h/0#s3cret"], "--url redis://h***"),
            (
                &["--url=redis://h?namespace=a:&pass=s3cret"],
                "--url=redis://h?namespace=a:***",
            ),
        ] {
            assert_eq!(kept(given), expected);
        }
    }

    #[test]
    fn the_build_knows_its_compiler() {
        assert!(harness().rust_version.starts_with("rustc "));
    }
}
