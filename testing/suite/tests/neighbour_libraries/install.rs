//! Installs or builds the programs in `neighbours` and their dependencies in cargo's target
//! directory, in the versions pinned beside them.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use locktopus_servers::{in_ci, reason_in, skipped};
use rustix::fs::{FlockOperation, flock};

const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/neighbours");
const INTO: &str = env!("CARGO_TARGET_TMPDIR");

/// How to run a program.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) library: &'static str,
    pub(crate) command: Vec<OsString>,
    pub(crate) folder: PathBuf,
}

/// Why a test is skipped.
enum Missing {
    /// The user set a variable with this reason.
    Reason(String),
    /// A requirement is missing. In CI that is a failure.
    Needs(String),
    /// A registry did not deliver. That is no fault of the tested code, so it fails the test only
    /// if everything is required.
    Download(String),
}

/// A Node program. npm installs the dependencies of all of them.
pub(crate) fn node(library: &'static str, worker: &'static str) -> Option<Program> {
    found(library, "LOCKTOPUS_SKIP_NODE", || {
        let (node, npm) = (in_path("node")?, in_path("npm")?);
        let (sources, folder) = (
            Path::new(SOURCES).join("node"),
            Path::new(INTO).join("node"),
        );
        let _lock = lock(&folder);
        once(&folder, &contents(&sources), || {
            for entry in fs::read_dir(&sources).unwrap() {
                let file = entry.unwrap();
                fs::copy(file.path(), folder.join(file.file_name())).unwrap();
            }
            let words = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
            let patience = ["--fetch-retries=1", "--fetch-timeout=30000"];
            let mut install = Command::new(npm);
            let install = install.args(words).args(patience).current_dir(&folder);
            succeeds(install).map_err(Missing::Download)
        })?;
        Ok((vec![node.into(), worker.into()], folder))
    })
}

/// One program for several libraries; `argument` selects one.
pub(crate) fn go(library: &'static str, argument: &'static str) -> Option<Program> {
    found(library, "LOCKTOPUS_SKIP_GO", || {
        let go = in_path("go")?;
        let (sources, folder) = (Path::new(SOURCES).join("go"), Path::new(INTO).join("go"));
        let _lock = lock(&folder);
        let program = folder.join("neighbour");
        let go = |words: &[&str]| {
            let mut go = Command::new(&go);
            // The user's settings are for other programs: no vendoring, no workspace, no download
            // of another Go.
            go.env_remove("GOFLAGS").env("GOWORK", "off");
            go.env("GOTOOLCHAIN", "local").env("CGO_ENABLED", "0");
            go.args(words).current_dir(&sources);
            go
        };
        once(&folder, &contents(&sources), || {
            succeeds(&mut go(&["mod", "download"])).map_err(Missing::Download)?;
            // The checkout may belong to another user; git then tells Go nothing about it.
            let mut build = go(&["build", "-mod=readonly", "-buildvcs=false", "-o"]);
            if let Err(why) = succeeds(build.arg(&program)) {
                panic!("{why}");
            }
            Ok(())
        })?;
        Ok((vec![program.into(), argument.into()], folder))
    })
}

/// The system's redis-py.
pub(crate) fn python() -> Option<Program> {
    found("redis-py", "LOCKTOPUS_SKIP_REDIS_PY", || {
        let python = python_that(&["-c", "import redis.lock"]);
        let python = python.ok_or_else(|| Missing::Needs("no python3 has redis".to_owned()))?;
        Ok(python_worker(python, "redis_py", None))
    })
}

/// A Python library that pip installs.
pub(crate) fn pip(library: &'static str, module: &'static str) -> Option<Program> {
    found(library, "LOCKTOPUS_SKIP_PIP", || {
        let python = python_that(&["-m", "pip", "--version"]);
        let python = python.ok_or_else(|| Missing::Needs("no python3 has pip".to_owned()))?;
        let requirements = Path::new(SOURCES).join("python/requirements.txt");
        let folder = Path::new(INTO).join("python");
        let _lock = lock(&folder);
        // Some of it is compiled for one version of Python.
        let version = Command::new(&python).arg("--version").output().unwrap();
        let made_from = [version.stdout, fs::read(&requirements).unwrap()].concat();
        once(&folder, &made_from, || {
            // Every requirement is pinned, and none may run code during the installation.
            let words = ["-m", "pip", "install", "--quiet", "--upgrade", "--no-deps"];
            let more = ["--only-binary=:all:", "--disable-pip-version-check"];
            let patience = ["--retries=1", "--timeout=30"];
            let mut install = Command::new(&python);
            let install = install.args(words).args(more).args(patience);
            let install = install.arg("--target").arg(&folder);
            let install = install.arg("--requirement").arg(&requirements);
            succeeds(install).map_err(Missing::Download)
        })?;
        Ok(python_worker(python, module, Some(folder)))
    })
}

/// The configured Python, or the first of the usual ones, if it can import all of this.
fn python_that(can: &[&str]) -> Option<OsString> {
    let named = std::env::var_os("LOCKTOPUS_PYTHON");
    let usual = || vec!["python3".into(), "/usr/bin/python3".into()];
    let mut pythons = named.map_or_else(usual, |named| vec![named]).into_iter();
    pythons.find(|python| {
        let looked = Command::new(python).args(can).output();
        looked.is_ok_and(|output| output.status.success())
    })
}

/// Writes no compiled files beside the sources.
fn python_worker(python: OsString, module: &str, installed: Option<PathBuf>) -> Run {
    let mut command = vec![python, "-B".into(), "worker.py".into(), module.into()];
    command.extend(installed.map(PathBuf::into_os_string));
    (command, Path::new(SOURCES).join("python"))
}

/// Maven's messages if a repository does not answer or lacks something.
const DOWNLOAD_TROUBLE: [&str; 4] = [
    "Could not transfer",
    "Could not resolve",
    "Cannot access",
    "could not be resolved",
];

/// One program for several libraries; `argument` selects one.
pub(crate) fn java(library: &'static str, argument: &'static str) -> Option<Program> {
    found(library, "LOCKTOPUS_SKIP_JDK", || {
        let (java, mvn) = (in_path("java")?, in_path("mvn")?);
        let (sources, folder) = (
            Path::new(SOURCES).join("java"),
            Path::new(INTO).join("java"),
        );
        let _lock = lock(&folder);
        once(&folder, &contents(&sources), || {
            let mut into = OsString::from("-Dneighbour.directory=");
            into.push(&folder);
            let mut build = Command::new(mvn);
            let build = build.args(["--batch-mode", "--quiet", "--file"]);
            let build = build.arg(sources.join("pom.xml")).arg(into).arg("package");
            succeeds(build).map_err(|why| {
                let download = DOWNLOAD_TROUBLE.iter().any(|words| why.contains(words));
                assert!(download, "{why}");
                Missing::Download(why)
            })
        })?;
        let quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error";
        let command = [quiet, "-jar", "neighbour.jar", argument].map(OsString::from);
        Ok(([vec![java.into()], command.into()].concat(), folder))
    })
}

/// Builds a folder, unless it was built from these inputs already. Ignores what an interrupted
/// attempt left, and leaves existing files alone: a concurrent test may run them.
fn once(
    folder: &Path,
    made_from: &[u8],
    make: impl FnOnce() -> Result<(), Missing>,
) -> Result<(), Missing> {
    let stamp = folder.join("made");
    if fs::read(&stamp).is_ok_and(|found| found == made_from) {
        return Ok(());
    }
    let _ = fs::remove_file(&stamp);
    make()?;
    fs::write(stamp, made_from).unwrap();
    Ok(())
}

/// All files of a tree, in the order of their names.
fn contents(path: &Path) -> Vec<u8> {
    if !path.is_dir() {
        return [
            path.as_os_str().as_encoded_bytes(),
            &fs::read(path).unwrap(),
        ]
        .concat();
    }
    let entries = fs::read_dir(path).unwrap();
    let mut entries: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries.iter().flat_map(|entry| contents(entry)).collect()
}

/// A program of this package, which needs no installation.
pub(crate) fn rslock() -> Program {
    Program {
        library: "rslock",
        command: vec![env!("CARGO_BIN_EXE_rslock-neighbour").into()],
        folder: PathBuf::from(INTO),
    }
}

/// A command, and the folder to run it in.
type Run = (Vec<OsString>, PathBuf);

fn found(
    library: &'static str,
    variable: &str,
    look: impl FnOnce() -> Result<Run, Missing>,
) -> Option<Program> {
    let found = reason_in(variable).map_or_else(look, |why| Err(Missing::Reason(why)));
    let all = std::env::var_os("LOCKTOPUS_REQUIRE_ALL").is_some_and(|value| !value.is_empty());
    let in_ci = all || in_ci();
    let why = match found {
        Ok((command, folder)) => {
            return Some(Program {
                library,
                command,
                folder,
            });
        }
        Err(Missing::Needs(what)) if in_ci => panic!(
            "in CI the test with {library} cannot be left out without a reason in {variable}: {what}"
        ),
        Err(Missing::Download(why)) if all => panic!("LOCKTOPUS_REQUIRE_ALL is set: {why}"),
        Err(Missing::Download(why)) => format!(
            "a registry did not give what it needs, which LOCKTOPUS_REQUIRE_ALL makes a failure: {why}"
        ),
        Err(Missing::Needs(why) | Missing::Reason(why)) => why,
    };
    skipped(&format!("the test with {library}"), &why);
    None
}

fn in_path(name: &str) -> Result<PathBuf, Missing> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|dir| dir.join(name))
        .find(|program| program.is_file())
        .ok_or_else(|| Missing::Needs(format!("PATH has no {name}")))
}

/// Locks the folder against other installing processes until it is dropped.
fn lock(folder: &Path) -> fs::File {
    fs::create_dir_all(folder).unwrap();
    let file = fs::File::create(folder.join("lock")).unwrap();
    flock(&file, FlockOperation::LockExclusive).unwrap();
    file
}

/// Runs a command; an error says what went wrong.
fn succeeds(command: &mut Command) -> Result<(), String> {
    let output = command.output().unwrap();
    if output.status.success() {
        return Ok(());
    }
    let Output { stdout, stderr, .. } = output;
    let said = [stdout, stderr].concat();
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&said)))
}
