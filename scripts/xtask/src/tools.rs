//! Programs that tests start: found, or installed where that is permitted.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::{Done, fail, missing};
use crate::packages::{ensure, install};
use crate::shell::{Shell, is_program, say};

pub(crate) fn git(sh: &Shell) -> Done {
    ensure(sh, || sh.have("git"), &["git"], "no git after installing it")
}

/// A Java compiler and Maven, which build the Redisson peer.
pub(crate) fn jdk(sh: &Shell) -> Done {
    let there = || sh.have("javac") && sh.have("mvn");
    ensure(
        sh,
        there,
        &["default-jdk-headless", "maven"],
        "no Java compiler or no Maven after installing them",
    )
}

fn some_python(sh: &Shell, arguments: &[&str]) -> bool {
    let asked = sh.var("LOCKTOPUS_PYTHON");
    let pythons =
        asked.as_ref().map_or_else(|| vec!["python3", "/usr/bin/python3"], |one| vec![one]);
    pythons.into_iter().any(|python| sh.have(python) && sh.cmd(python).args(arguments).works())
}

/// From the system's packages, for the system's Python, which need not be the first one in the
/// path.
pub(crate) fn redis_py(sh: &Shell) -> Done {
    let there = || some_python(sh, &["-c", "import redis.lock"]);
    ensure(sh, there, &["python3-redis"], "no Python has redis-py after installing it")
}

pub(crate) fn pip(sh: &Shell) -> Done {
    let there = || some_python(sh, &["-m", "pip", "--version"]);
    ensure(sh, there, &["python3-pip"], "no Python has pip after installing it")
}

/// testing/suite/neighbours pins the packages of pip and npm, and the Go modules.
pub(crate) fn node(sh: &Shell) -> Done {
    let there = || sh.have("node") && sh.have("npm");
    ensure(sh, there, &["nodejs", "npm"], "no Node or no npm after installing them")
}

pub(crate) fn go(sh: &Shell) -> Done {
    // The folder of Go's own installation is not in every path.
    let own = Path::new("/usr/local/go/bin");
    if !sh.have("go") && is_program(&own.join("go")) {
        sh.export("PATH", format!("{}:{}", sh.var("PATH").unwrap_or_default(), own.display()));
    }
    ensure(sh, || sh.have("go"), &["golang-go"], "no Go after installing it")?;
    // The version that go.mod asks for. Debian 12's Go is older, and would fail on its syntax.
    let asked = fs::read_to_string(sh.root.join("testing/suite/neighbours/go/go.mod"))?;
    let Some(needed) = asked.lines().find_map(|line| line.strip_prefix("go ")) else {
        fail!("testing/suite/neighbours/go/go.mod does not say which Go it needs");
    };
    let found = sh.cmd("go").args(["env", "GOVERSION"]).read()?;
    let found = found.strip_prefix("go").unwrap_or(&found);
    if numbers(found) < numbers(needed) {
        missing!("Go {needed} or newer is needed, and this is {found}");
    }
    Ok(())
}

/// The numbers of a version, to compare.
fn numbers(version: &str) -> Vec<u64> {
    version.split('.').map_while(|part| part.parse().ok()).collect()
}

/// The folder of PostgreSQL's programs, the newest where Debian puts them; tests start a server of
/// their own.
pub(crate) fn postgres(sh: &Shell) -> Done<PathBuf> {
    ensure(
        sh,
        || newest_postgres().is_some(),
        &["postgresql"],
        "no PostgreSQL server after installing it",
    )?;
    newest_postgres().ok_or_else(|| "no PostgreSQL server".into())
}

fn newest_postgres() -> Option<PathBuf> {
    let mut versions = folders_of("/usr/lib/postgresql");
    versions.retain(|version| version.join("bin/initdb").exists());
    versions
        .sort_by_key(|version| version.file_name().map(|name| numbers(&name.to_string_lossy())));
    Some(versions.pop()?.join("bin"))
}

fn folders_of(folder: impl AsRef<Path>) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// A server that the user named, such as one out of an image, does not bring it.
pub(crate) fn redis_cli(sh: &Shell) -> Done {
    let there = || sh.have("redis-cli") || sh.have("valkey-cli");
    if there() || install(sh, &["redis-tools"]).is_err() {
        ensure(sh, there, &["valkey-tools"], "the installed package brought no redis-cli")?;
    }
    if !there() {
        missing!("the installed package brought no redis-cli");
    }
    Ok(())
}

/// A library that gives a server process a clock that can be set. Debian and its kin have it as
/// libfaketime.
pub(crate) fn clock_library(sh: &Shell) -> Done {
    let otherwise = "no libfaketime.so.1 after installing libfaketime";
    ensure(sh, || has_clock_library(sh), &["libfaketime"], otherwise)
}

/// In the folders that testing/servers/src/topology/plain/clock.rs searches.
fn has_clock_library(sh: &Shell) -> bool {
    let fixed = ["/usr/lib", "/usr/lib64"].map(PathBuf::from);
    let local = folders_of("/usr/local").into_iter().filter(|folder| {
        folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with("lib"))
    });
    sh.var("LOCKTOPUS_FAKETIME").is_some_and(|file| Path::new(&file).exists())
        || (folders_of("/usr/lib").into_iter().chain(fixed).chain(local))
            .any(|folder| folder.join("faketime/libfaketime.so.1").exists())
}

/// The server program that the user asked for, else the first one found.
fn find_server(sh: &Shell) -> Option<PathBuf> {
    if let Some(asked) = sh.var("LOCKTOPUS_SERVER_BIN") {
        return Some(if asked.contains('/') { sh.from.join(asked) } else { asked.into() });
    }
    let names = ["redis-server", "valkey-server"];
    // The folders of the system's packages are not in every path.
    let places = |name: &&str| {
        ["/usr/bin", "/usr/local/bin", "/usr/sbin"].map(|folder| Path::new(folder).join(name))
    };
    names
        .iter()
        .find_map(|name| sh.find(name))
        .or_else(|| names.iter().flat_map(places).find(|file| is_program(file)))
}

/// A server program, and its version line. Everything started from here on uses it.
pub(crate) fn server(sh: &Shell) -> Done<String> {
    let found = match find_server(sh) {
        // If the chosen program does not exist, that is an error: no other server replaces it.
        Some(found) if !is_program(&found) => {
            fail!("LOCKTOPUS_SERVER_BIN names {}, which is not a program", found.display())
        }
        Some(found) => found,
        None => {
            install(sh, &["redis-server"]).or_else(|_| install(sh, &["valkey-server"]))?;
            match find_server(sh) {
                Some(found) => found,
                None => missing!("the installed package brought no server program"),
            }
        }
    };
    // Checked before anything is built: a program that is no server would fail every cell of a run,
    // each after its timeout.
    let (_, said) = sh.cmd(&found).arg("--version").told()?;
    let version = said.lines().next().unwrap_or_default();
    if !version.contains("server") {
        fail!(
            "{} is no redis-server or valkey-server: its --version says '{version}'",
            found.display()
        );
    }
    sh.export("LOCKTOPUS_SERVER_BIN", found.to_string_lossy());
    say(format!("server program: {version}"));
    Ok(version.to_owned())
}
