//! The oldest Rust version that is promised.

use std::fs;

use crate::cargo;
use crate::failure::{Done, Failure, fail, missing};
use crate::shell::{Shell, say};

pub(crate) const HELP: &str = "\
Builds every published crate with the oldest supported Rust: `rust-version` of Cargo.toml.

Usage: scripts/oldest-rust

Installs that toolchain with rustup, unless LOCKTOPUS_NO_INSTALL is set. If it cannot be downloaded, the check says so and is
skipped; with LOCKTOPUS_REQUIRE_ALL that is a failure.";

pub(crate) fn main(sh: &Shell, _: &[String]) -> Done {
    let manifest = fs::read_to_string(sh.root.join("Cargo.toml"))?;
    let line =
        manifest.lines().find_map(|line| line.strip_prefix("rust-version = \"")?.strip_suffix('"'));
    let Some(version) = line else { fail!("Cargo.toml does not say which Rust is the oldest") };
    if let Err(failure) = ensure_version(sh, version) {
        let Failure::Missing(why) = failure else {
            return Err(failure);
        };
        return sh.not_checked(format!(
            "the oldest Rust, {version}: {why}; clippy's msrv setting stands in for it"
        ));
    }
    let packages = cargo::published(sh)?;
    // A target folder of its own leaves other builds alone.
    let target = sh.scratch()?.join("oldest-rust");
    sh.cmd("rustup")
        .args(["run", version, "cargo", "check", "--locked", "--all-features", "--target-dir"])
        .arg(target)
        .args(packages.iter().map(|package| format!("--package={}", cargo::name(package))))
        .run()?;
    say(format!("{} crates build with Rust {version}", packages.len()));
    Ok(())
}

fn ensure_version(sh: &Shell, version: &str) -> Done {
    if !sh.have("rustup") {
        missing!("there is no rustup to get it with");
    } else if sh.cmd("rustup").args(["run", version, "rustc", "--version"]).works() {
        return Ok(());
    } else if sh.var("LOCKTOPUS_NO_INSTALL").is_some() {
        missing!("it is not installed, and LOCKTOPUS_NO_INSTALL is set");
    }
    say(format!("installing Rust {version}"));
    let install = [
        "300",
        "rustup",
        "toolchain",
        "install",
        version,
        "--profile",
        "minimal",
        "--no-self-update",
    ];
    if sh.cmd("timeout").args(install).code()? != 0 {
        missing!("it is not installed, and cannot be");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up;

    #[test]
    fn a_rust_that_cannot_be_had_is_a_failure_only_where_all_is_required() {
        let sh = made_up::shell();
        assert_eq!(main(&sh, &[]), Ok(()));
        made_up::program(&sh, "rustup", "exit 1");
        sh.export("LOCKTOPUS_NO_INSTALL", "1");
        sh.export("LOCKTOPUS_REQUIRE_ALL", "1");
        assert!(
            made_up::said(main(&sh, &[])).contains("LOCKTOPUS_NO_INSTALL is set; clippy's msrv")
        );
    }
}
