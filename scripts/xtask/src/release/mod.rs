//! A release: `scripts/release`.

mod checks;
pub(crate) mod contents;
mod tarballs;
mod upload;

use std::path::PathBuf;

use serde_json::Value;

use crate::cargo;
use crate::checks::{features, oldest_rust, supply_chain};
use crate::failure::{Done, fail};
use crate::shell::{Shell, say};

pub(crate) const HELP: &str = "\
Publishes all published crates in one go, after checking all that can be checked beforehand.

Usage: scripts/release [--dry-run [--quick | --tests]]

  --dry-run   do everything except the upload and the tag
  --tests     in a dry run, only what needs no other program: sources, tarballs, build, tests (nightly)
  --quick     in a dry run, only the contents of the tarballs, made from the working tree (for each change)

It checks, in this order:
  sources     nothing is uncommitted; the changelog has a section for this version (with --dry-run: or an unreleased one)
  build       each tarball builds with the tarballs of the others and nothing else from this repository
  tarballs    each has its licences, a README without relative links, and the metadata that an index and docs.rs show
  tests       the tests and doc examples in the unpacked tarballs pass, with all features
  supply      licences, sources, known vulnerabilities (scripts/supply-chain); a dry run may skip what it cannot reach
  oldest      the oldest supported Rust (scripts/oldest-rust); a dry run may skip it too
  features    each crate builds without features, with each, and with each pair (scripts/features)
  proofs      every part of the last nightly run passed; prints its table (a dry run only says which parts did not)
  soak        an hour of scripts/soak leaves nothing behind (not in a dry run)
  semver      no change that breaks users of the last release (the newest tag vX.Y.Z), unless the version says so
              (before the first release there is nothing to compare with)
  contents    writes an SBOM (CycloneDX) for each crate (target/tarballs/package/*.cdx.json)

It needs no server. It needs cargo-deny, cargo-cyclonedx and, after the first release, cargo-semver-checks, and installs
them unless LOCKTOPUS_NO_INSTALL is set.

It asks before it uploads, so it needs a terminal. Afterwards it creates the tag vX.Y.Z and says how to push it.

crates.io accepts a few new crates at once, then one every ten minutes (https://crates.io/docs/rate-limits). So the first release
stops half-way, unless help@crates.io has raised the limit. It then lists the missing crates and offers to go on. If you run it
again on the same commit, it skips the crates that the index has, after checking that they are the same.";

/// How much is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    All,
    Quick,
    Tests,
}

/// A release, or a dry run of one.
struct Release<'a> {
    sh: &'a Shell,
    dry: bool,
    part: Part,
    /// The workspace's crates for a package registry, as `cargo metadata` describes them.
    packages: Vec<Value>,
    /// The version that all of them share.
    version: String,
    /// The target folder of the tarballs; they end up in its folder `package`.
    target: PathBuf,
}

pub(crate) fn main(sh: &Shell, arguments: &[String]) -> Done {
    let (dry, part) = read(arguments)?;
    let packages = cargo::published(sh)?;
    let version = one_version(&packages)?;
    let release =
        Release { sh, dry, part, packages, version, target: sh.target().join("tarballs") };
    say(format!("version {}: {}", release.version, release.names().collect::<Vec<_>>().join(" ")));
    release.check_sources()?;
    release.make_tarballs()?;
    release.check_tarballs()?;
    if !dry {
        release.missing()?;
    }
    if part != Part::Quick {
        release.test_tarballs()?;
    }
    if part == Part::All {
        release.check_the_rest()?;
    }
    if !dry {
        return release.upload();
    }
    say(format!(
        "a dry run: nothing was uploaded. The tarballs are in {}/package",
        release.target.display()
    ));
    Ok(())
}

fn read(arguments: &[String]) -> Done<(bool, Part)> {
    let (mut dry, mut part) = (false, Part::All);
    for option in arguments {
        match option.as_str() {
            "--dry-run" => dry = true,
            "--quick" => part = Part::Quick,
            "--tests" => part = Part::Tests,
            _ => fail!("unknown option: {option} (see --help)"),
        }
    }
    if part != Part::All && !dry {
        fail!("--quick and --tests are for a dry run: a release is checked as a whole");
    }
    Ok((dry, part))
}

fn one_version(packages: &[Value]) -> Done<String> {
    let mut versions: Vec<_> =
        packages.iter().filter_map(|package| package["version"].as_str()).collect();
    versions.sort_unstable();
    versions.dedup();
    let [version] = versions[..] else {
        fail!("crates of different versions: {}", versions.join(" "))
    };
    Ok(version.to_owned())
}

impl Release<'_> {
    fn names(&self) -> impl Iterator<Item = &str> {
        self.packages.iter().map(cargo::name)
    }

    /// The folder of a crate, relative to the repository. Published test crates have short names in
    /// a folder of their own.
    fn folder_of(&self, name: &str) -> String {
        let own = format!("crates/{name}");
        if self.sh.root.join(&own).is_dir() {
            return own;
        }
        format!("testing/{}", name.trim_start_matches("locktopus-"))
    }

    fn tarball(&self, name: &str) -> PathBuf {
        self.target.join(format!("package/{name}-{}.crate", self.version))
    }

    fn check_the_rest(&self) -> Done {
        // A dry run may continue if a check could not reach its source; a release may not.
        let sh = self.sh.again("release");
        if !self.dry {
            sh.export("LOCKTOPUS_REQUIRE_ALL", "1");
        }
        supply_chain::main(&sh, &[])?;
        oldest_rust::main(&sh, &[])?;
        features::main(&sh, &[])?;
        self.check_proofs()?;
        self.soak_for_an_hour()?;
        self.check_semver()?;
        self.list_contents()
    }
}

#[cfg(test)]
mod made_up_release {
    use super::*;

    /// A release of crates of version 1.2.3 that have tarballs.
    pub(super) fn of<'a>(sh: &'a Shell, names: &[&str]) -> Release<'a> {
        let packages = names
            .iter()
            .map(|name| serde_json::json!({ "name": name, "version": "1.2.3" }))
            .collect();
        let target = sh.scratch().unwrap().join("released");
        std::fs::create_dir_all(target.join("package")).unwrap();
        let release = Release {
            sh,
            dry: false,
            part: Part::All,
            packages,
            version: "1.2.3".to_owned(),
            target,
        };
        for name in names {
            std::fs::write(release.tarball(name), name).unwrap();
        }
        release
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::said;

    #[test]
    fn a_release_is_checked_as_a_whole() {
        assert!(said(read(&["--tests".into()])).contains("for a dry run"));
        assert!(said(read(&["--dry".into()])).contains("unknown option"));
        assert_eq!(read(&["--dry-run".into(), "--quick".into()]), Ok((true, Part::Quick)));
        assert_eq!(read(&[]), Ok((false, Part::All)));
    }

    #[test]
    fn crates_have_one_version() {
        let of = |versions: &[&str]| {
            versions.iter().map(|one| serde_json::json!({ "version": one })).collect::<Vec<_>>()
        };
        assert_eq!(one_version(&of(&["1.2.3", "1.2.3"])), Ok("1.2.3".to_owned()));
        assert!(
            said(one_version(&of(&["1.2.3", "1.2.4"]))).contains("different versions: 1.2.3 1.2.4")
        );
    }
}
