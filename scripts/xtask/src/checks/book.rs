//! The book, built by mdBook.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use crate::failure::{Done, Failure, fail, missing};
use crate::shell::{Shell, say};

pub(crate) const HELP: &str = "\
Builds the book and checks every link. Its examples are tests: `cargo test --doc --package locktopus-pages`.

Usage: scripts/book [OPTIONS OF `mdbook build`]

  scripts/book           builds it into target/book
  scripts/book --open    then opens it
  scripts/book --if-there  only if mdBook is installed: for each change, because a test checks the links too

Uses the mdBook in PATH. If there is none, builds it once into target, which takes some minutes; with LOCKTOPUS_NO_INSTALL that
is an error. A warning is an error too.";

const VERSION: &str = "0.5.4";

pub(crate) fn main(sh: &Shell, arguments: &[String]) -> Done {
    let (only_if_there, options) = match arguments {
        [first, rest @ ..] if first == "--if-there" => (true, rest),
        all => (false, all),
    };
    let program = match ensure_mdbook(sh, only_if_there) {
        Err(Failure::Missing(why)) => {
            return sh.not_checked(format!("that mdBook builds the book: {why}"));
        }
        found => found?,
    };
    // mdBook runs this crate. It is built here, so that cargo's errors are visible.
    sh.cargo("build").args(["--quiet", "--package", "locktopus-pages"]).run()?;
    let mut log = Vec::new();
    if sh.cmd(program).args(["build", "docs/book"]).args(options).recorded(&mut log)? != 0 {
        fail!("the book cannot be built");
    }
    if has_warning(&String::from_utf8_lossy(&log)) {
        fail!("the book was built with warnings");
    }
    let index = sh.root.join("target/book/index.html");
    // If a script of ours has the name of one of mdBook's, mdBook silently loads ours instead.
    if let Some(script) = loaded_twice(&fs::read_to_string(&index)?) {
        fail!("a page loads one script twice: additional-js has a name that mdBook has: {script}");
    }
    say(format!("the book is in {}", index.display()));
    Ok(())
}

/// Finds mdBook in the path or under target, if its version fits.
fn find_mdbook(sh: &Shell) -> Option<PathBuf> {
    let found = [sh.find("mdbook"), Some(sh.root.join("target/tools/bin/mdbook"))];
    let wanted = format!("mdbook v{VERSION}");
    found
        .into_iter()
        .flatten()
        .find(|program| sh.cmd(program).arg("--version").read().as_ref() == Ok(&wanted))
}

fn ensure_mdbook(sh: &Shell, only_if_there: bool) -> Done<PathBuf> {
    let built = sh.root.join("target/tools");
    if let Some(found) = find_mdbook(sh) {
        return Ok(found);
    } else if only_if_there {
        missing!("there is no mdBook {VERSION}");
    } else if sh.var("LOCKTOPUS_NO_INSTALL").is_some() {
        fail!(
            "there is no mdBook {VERSION}, and LOCKTOPUS_NO_INSTALL is set; cargo install --locked mdbook --version {VERSION} \
             installs it"
        );
    }
    say(format!("building mdBook {VERSION} (once, some minutes)"));
    let install = [
        "install",
        "--quiet",
        "--locked",
        "mdbook",
        "--version",
        VERSION,
        "--no-default-features",
        "--features",
        "search",
    ];
    if sh.cmd("cargo").args(install).arg("--root").arg(&built).code()? != 0 {
        fail!("mdBook {VERSION} cannot be built");
    }
    Ok(built.join("bin/mdbook"))
}

fn has_warning(said: &str) -> bool {
    let mut words = said.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.any(|word| word == "WARN" || word == "ERROR")
}

fn loaded_twice(page: &str) -> Option<&str> {
    let mut seen = BTreeSet::new();
    let sources = page.split("<script src=\"").skip(1).filter_map(|rest| rest.split('"').next());
    sources.filter(|source| !seen.insert(*source)).last()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::{program, said, with};

    /// With `LOCKTOPUS_NO_INSTALL` the command fails at once.
    #[test]
    fn mdbook_is_installed_only_where_that_is_allowed() {
        let sh = with(&[("LOCKTOPUS_NO_INSTALL", "1")]);
        let asked = sh.scratch().unwrap().join("asked");
        program(&sh, "cargo", &format!("echo \"$*\" >{}; exit 1", asked.display()));
        if find_mdbook(&sh).is_some() {
            return; // A clone in which it was built.
        }
        assert!(
            said(ensure_mdbook(&sh, false))
                .contains("no mdBook 0.5.4, and LOCKTOPUS_NO_INSTALL is set")
        );
        assert!(!asked.exists());
        // In the check of each change a missing mdBook is a message and no failure.
        assert_eq!(main(&sh, &["--if-there".into()]), Ok(()));
        sh.export("LOCKTOPUS_REQUIRE_ALL", "1");
        assert!(said(main(&sh, &["--if-there".into()])).contains("that mdBook builds the book"));
        sh.unset("LOCKTOPUS_NO_INSTALL");
        assert!(said(ensure_mdbook(&sh, false)).contains("cannot be built"));
        assert!(fs::read_to_string(asked).unwrap().starts_with("install --quiet --locked mdbook"));
    }

    #[test]
    fn warnings_and_doubled_scripts_are_seen() {
        assert!(
            has_warning("2026 [WARN] (mdbook): broken") && !has_warning("INFO NO_ERRORS WARNING")
        );
        let page = r#"<script src="a.js"></script><script src="b.js"></script>"#;
        assert_eq!(loaded_twice(page), None);
        assert_eq!(loaded_twice(&format!("{page}<script src=\"a.js\">")), Some("a.js"));
    }
}
