//! The program as tests run it, and a directory of its own for each of them.
#![allow(dead_code, unreachable_pub, reason = "each test program uses its part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The program with these arguments, which says what it says without colours.
pub fn bench(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_locktopus-bench"));
    command.args(arguments).env("NO_COLOR", "1");
    command
}

/// Runs it to its end.
pub fn ran(command: &mut Command) -> Output {
    command.output().expect("the binary starts")
}

/// What it said on standard error.
pub fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// An empty directory.
pub fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).expect("a writable target directory");
    directory
}
