//! Starts the program through a launcher, so that the guardian knows the program before it runs.
//!
//! If `run` named the program to the guardian once it is started, `run` could be killed in between,
//! and nothing would end the program. The launcher is this program again. It inherits the pipe to
//! the guardian, which reads until the launcher has closed it too. The launcher names its own
//! process ID, which the program keeps, and then becomes the program by `exec`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use clap::Args;
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{Pid, getpid, getppid};

use super::grace::Grace;
use super::group::Group;
use super::guardian::{self, Guardian};
use crate::exit::Exit;
use crate::output::complain;

/// Becomes a program, after telling the guardian about it
#[derive(Args, Debug)]
pub(crate) struct LaunchArgs {
    /// The inherited pipe to the guardian.
    #[arg(long)]
    pipe: RawFd,

    /// The process ID of `run`.
    #[arg(long)]
    parent: i32,

    /// The program has a process group of its own.
    #[arg(long)]
    whole: bool,

    /// Milliseconds between `TERM` and `KILL`.
    #[arg(long)]
    polite: u64,

    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// How to start the program.
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) command: Command,
    /// The launcher inherits it, so keep it until then. `None` if there is no launcher.
    pub(super) pipe: Option<OwnedFd>,
}

impl Launch {
    pub(super) fn of(
        program: &[OsString],
        guardian: &Guardian,
        whole: bool,
        grace: Grace,
    ) -> io::Result<Self> {
        let pipe = guardian.pipe()?;
        let number = pipe.as_raw_fd();
        if open(number).is_err() {
            // A launcher could not open it either: there is no `/proc`, for example.
            let (command, pipe) = (becoming(program), None);
            return Ok(Self { command, pipe });
        }
        // `run` starts nothing else meanwhile, so only the launcher inherits it.
        fcntl_setfd(&pipe, FdFlags::empty())?;
        let mut command = guardian::this_program()?;
        command
            .arg("run-launcher")
            .arg(format!("--pipe={number}"))
            .arg(format!("--parent={}", getpid()))
            .arg(format!("--polite={}", grace.polite.as_millis()));
        if whole {
            command.arg("--whole");
        }
        command.arg("--").args(program);
        let pipe = Some(pipe);
        Ok(Self { command, pipe })
    }

    /// Whether the program registers itself with the guardian.
    pub(super) fn registers(&self) -> bool {
        self.pipe.is_some()
    }
}

fn becoming(program: &[OsString]) -> Command {
    let (program, arguments) = program.split_at(program.len().min(1));
    let mut command = Command::new(program.first().map(OsString::as_os_str).unwrap_or_default());
    command.args(arguments);
    command
}

/// Opens an inherited pipe. What comes out is closed by `exec`.
fn open(pipe: RawFd) -> io::Result<File> {
    File::options().write(true).open(format!("/dev/fd/{pipe}"))
}

/// Runs the launcher. Returns only if there is no program to become.
pub(crate) fn serve(args: &LaunchArgs) -> u8 {
    let mut pipe = match registered(args) {
        Ok(pipe) => pipe,
        Err(error) => {
            complain(&format!("locktopus: cannot tell the guardian: {error}"));
            return Exit::CannotStart.code();
        }
    };
    // Without `run` the lock is not renewed. The guardian learns of the end of `run` when the pipe
    // is closed, and ends what was registered.
    if getppid() != Pid::from_raw(args.parent) {
        return Exit::Lost.code();
    }
    let error = becoming(&args.command).exec();
    let errno = error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error());
    // `run` says it, as it says all errors.
    let _ = pipe.write_all(guardian::not_started(errno).as_bytes());
    Exit::CannotStart.code()
}

/// Tells the guardian about this process. The program inherits none of its ends of the pipe.
fn registered(args: &LaunchArgs) -> io::Result<File> {
    let mut pipe = open(args.pipe)?;
    nix::unistd::close(args.pipe)?;
    let group = Group {
        pid: getpid(),
        whole: args.whole,
    };
    pipe.write_all(guardian::target(group, args.polite).as_bytes())?;
    Ok(pipe)
}
