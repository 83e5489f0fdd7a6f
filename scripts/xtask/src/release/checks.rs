//! Conditions that are checked before anything is built, and the results of other commands.

use std::fs;

use super::{Part, Release};
use crate::failure::{Done, fail, missing};
use crate::measure::soak;
use crate::shell::{Shell, say};
use crate::{nightly, packages};

impl Release<'_> {
    fn read(&self, file: &str) -> Done<String> {
        Ok(fs::read_to_string(self.sh.root.join(file))?)
    }

    pub(super) fn check_sources(&self) -> Done {
        let git = |arguments: &[&str]| self.sh.cmd("git").args(arguments);
        // A check of a change may run in a tree without history, or with other files in it.
        if self.part != Part::Quick {
            let changed = git(&["status", "--porcelain"]).read()?;
            if !changed.is_empty() {
                let first: Vec<_> = changed.lines().take(5).collect();
                fail!("uncommitted changes, which would be in no tag: {}", first.join("\n"));
            }
        }
        let version = &self.version;
        let log = self.read("CHANGELOG.md")?;
        let has = |start: &str| log.lines().any(|line| line.starts_with(start));
        let section = format!("## [{version}]");
        if self.dry {
            if !has(&section) && !has("## [Unreleased]") {
                fail!("CHANGELOG.md has neither this version nor an unreleased section");
            }
            return Ok(());
        }
        // Checked first, because finding out after everything else costs hours.
        if fs::File::open("/dev/tty").is_err() {
            fail!("there is no terminal to ask on before the upload");
        } else if !git(&["var", "GIT_COMMITTER_IDENT"]).works() {
            fail!("git does not know who makes the tag");
        }
        packages::program(self.sh, "curl", "curl")?;
        if git(&["rev-parse", "--quiet", "--verify", &format!("refs/tags/v{version}")]).works() {
            fail!("there is a tag v{version} already: raise the version in Cargo.toml");
        }
        // This sentence would be in every tarball of the facade, for good.
        for page in ["README.md", "docs/book/start.md"] {
            if self.read(page)?.to_lowercase().contains("not on a package registry") {
                fail!(
                    "{page} says that there is nothing to be had from a registry: see docs/releasing.md"
                );
            }
        }
        if !has(&section) {
            fail!("CHANGELOG.md has no section '## [{version}] - DATE'");
        }
        Ok(())
    }

    /// The table of the last night, which the release quotes: `.ci/nightly` writes it, and its job
    /// keeps it as an artefact.
    pub(super) fn check_proofs(&self) -> Done {
        let name =
            self.sh.var("LOCKTOPUS_NIGHTLY_TABLE").unwrap_or_else(|| nightly::TABLE.to_owned());
        let why = match fs::read_to_string(self.sh.root.join(&name)) {
            Ok(table) if !table.is_empty() => {
                say(table.trim_end());
                let wrong = not_passed(&table);
                if wrong.is_empty() {
                    return Ok(());
                }
                format!("in {name} these did not pass, or are not there: {}", wrong.join(" "))
            }
            _ => format!(
                "there is no {name}: name that of the last night by LOCKTOPUS_NIGHTLY_TABLE"
            ),
        };
        if !self.dry {
            fail!("{why}");
        }
        self.sh.warn(format!("a release would be refused: {why}"));
        Ok(())
    }

    pub(super) fn soak_for_an_hour(&self) -> Done {
        if self.dry {
            say("a release is preceded by an hour of scripts/soak, which a dry run leaves out");
            return Ok(());
        }
        let out = self.sh.root.join("target/soak").to_string_lossy().into_owned();
        soak::main(&self.sh.again("soak"), &["--minutes".into(), "60".into(), "--out".into(), out])
    }

    pub(super) fn check_semver(&self) -> Done {
        let git = |arguments: &[&str]| self.sh.cmd("git").args(arguments);
        let (found, since) =
            git(&["describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"]).told()?;
        if !found {
            say(
                "nothing was released before: cargo-semver-checks has nothing to compare with, and was not run",
            );
            return Ok(());
        }
        ensure_command(self.sh, "semver-checks")?;
        // A crate that did not exist then cannot be compared: cargo would report an error of its
        // own, not of the crate.
        let mut compared = Vec::new();
        for name in self.names() {
            if git(&["cat-file", "-e", &format!("{since}:{}/Cargo.toml", self.folder_of(name))])
                .works()
            {
                compared.extend(["--package", name]);
            } else {
                say(format!("{name} is new since {since}"));
            }
        }
        if compared.is_empty() {
            fail!("no crate of {since} is left to compare with");
        }
        self.sh.cmd("cargo").args(["semver-checks", "--baseline-rev", &since]).args(compared).run()
    }
}

/// The parts whose last line in the nightly table is not a pass.
fn not_passed(table: &str) -> Vec<&'static str> {
    let passed = |part: &&&str| {
        let last = table.lines().rfind(|line| line.starts_with(&format!("| {part} |")));
        !last.is_some_and(|line| line.contains("| passed |"))
    };
    nightly::PARTS.iter().map(|(part, _)| part).filter(passed).copied().collect()
}

/// Makes sure that a cargo subcommand exists. It is called through cargo, because some understand
/// nothing else.
pub(super) fn ensure_command(sh: &Shell, command: &str) -> Done {
    if sh.cmd("cargo").args([command, "--version"]).works() {
        return Ok(());
    } else if sh.var("LOCKTOPUS_NO_INSTALL").is_some() {
        missing!("cargo-{command} is missing; cargo install --locked cargo-{command} installs it");
    }
    say(format!("installing cargo-{command}"));
    let name = format!("cargo-{command}");
    if sh.cmd("cargo").args(["install", "--locked", "--quiet", &name]).code()? != 0 {
        missing!("cargo could not install {name}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_a_part_counts() {
        let good: String = nightly::PARTS
            .iter()
            .map(|(part, _)| format!("| {part} | passed | 1 min |\n"))
            .collect();
        assert!(not_passed(&good).is_empty());
        assert_eq!(not_passed(&format!("{good}| soak | FAILED | 1 min |\n")), ["soak"]);
        assert!(
            not_passed(&format!("{good}| soak | FAILED | 1 min |\n| soak | passed | 1 min |\n"))
                .is_empty()
        );
        assert_eq!(not_passed("").len(), nightly::PARTS.len());
    }
}
