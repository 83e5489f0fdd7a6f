//! A machine for unit tests, with invented programs and variables and nothing from the real one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Done, Failure};
use crate::shell::Shell;

/// A shell in the repository. Its path has only the programs that `program` puts there.
pub(crate) fn shell() -> Shell {
    with(&[])
}

/// The same with these variables.
pub(crate) fn with(variables: &[(&str, &str)]) -> Shell {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let set = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect::<BTreeMap<_, _>>();
    let sh = Shell::new("test", &root, &root, set);
    let bin = sh.scratch().unwrap().join("bin");
    fs::create_dir(&bin).unwrap();
    sh.export("PATH", bin.to_string_lossy());
    sh
}

/// The same with the real programs.
pub(crate) fn on_the_real_path() -> Shell {
    let sh = shell();
    sh.export("PATH", std::env::var("PATH").unwrap());
    sh
}

/// Puts a shell script of this name into the path.
pub(crate) fn program(sh: &Shell, name: &str, script: &str) -> PathBuf {
    let file = sh.scratch().unwrap().join("bin").join(name);
    // Another process writes it. If this one did, a program that another test starts meanwhile
    // could inherit the open file, and a file that is open for writing cannot be started.
    let written = Command::new("/bin/sh")
        .args(["-c", r#"printf '#!/bin/sh\n%s\n' "$2" >"$1" && chmod 755 "$1""#, "write"])
        .arg(&file)
        .arg(script)
        .status();
    assert!(written.unwrap().success());
    file
}

/// The message of a failure.
pub(crate) fn said<T: std::fmt::Debug>(done: Done<T>) -> String {
    match done {
        Err(Failure::Said(words)) => words,
        other => panic!("it ended with {other:?}"),
    }
}
