//! `bench` and `failover`: run the harness, which is a separate program.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use clap::Args;

use crate::exit::Exit;
use crate::failure::Failure;

/// The harness.
const PROGRAM: &str = "locktopus-bench";

/// The arguments of the harness.
#[derive(Args, Debug)]
pub(crate) struct HarnessArgs {
    /// Passed unchanged to locktopus-bench
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Replaces this process by the harness: the one beside this program, else the first in `PATH`.
/// Returns only if that fails.
pub(crate) fn hand_over(command: &str, args: &HarnessArgs) -> Failure {
    let beside = std::env::current_exe()
        .ok()
        .and_then(|own| Some(own.parent()?.join(PROGRAM)))
        .filter(|path| path.is_file());
    let program = beside.unwrap_or_else(|| PROGRAM.into());
    let error = Command::new(&program)
        .arg(command)
        .args(&args.arguments)
        .exec();
    let program = program.display();
    if error.kind() == io::ErrorKind::NotFound {
        let problem = format!(
            "{PROGRAM} is neither beside this program nor in PATH; install the package of that name (scripts/package in the repository makes a .deb), or build it there: cargo install --path bench-harness"
        );
        return Failure::new(Exit::NoProgram, problem);
    }
    Failure::new(
        Exit::CannotStart,
        format!("cannot start {program}: {error}"),
    )
}
