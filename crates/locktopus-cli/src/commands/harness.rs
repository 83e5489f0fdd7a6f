//! `bench` and `failover`: hands over to the harness, which is a program of its own.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use clap::Args;

use crate::exit::Exit;
use crate::failure::Failure;

/// The harness.
const PROGRAM: &str = "locktopus-bench";

/// What the harness is told.
#[derive(Args, Debug)]
pub(crate) struct HarnessArgs {
    /// Handed over as they are; --help shows the harness's own
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// Becomes the harness: the one beside this program, else the first of the search path. Returns
/// only if there is none.
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
            "there is no {PROGRAM} beside this program or in PATH; from the repository: cargo install --path bench-harness"
        );
        return Failure::new(Exit::NoProgram, problem);
    }
    Failure::new(
        Exit::CannotStart,
        format!("cannot start {program}: {error}"),
    )
}
