//! Hands the terminal to the program when the program needs it.
//!
//! The program has its own process group, so the system stops it when it reads from the terminal.
//! `run` then gives it the terminal and continues it, as a shell does. Until then the terminal
//! stays with the other processes of the pipeline, such as a pager.
//!
//! A `run` under another `run` may be in the background itself. It asks the outer one for the
//! terminal by a signal. If the system stopped it instead, its lock would not be renewed.

use std::env;
use std::fs::File;

use nix::sys::signal::{SigSet, Signal as Masked};
use rustix::process::{Pid, Signal, getpgrp, getsid, kill_process, kill_process_group};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};

/// The controlling terminal of this process.
const TERMINAL: &str = "/dev/tty";

/// Tells a program the process ID of the `run` that hands the terminal to it.
pub(super) const ASK: &str = "LOCKTOPUS_RUN_PID";

/// Asks the `run` around this one for the terminal. Returns false if there is none in this session.
pub(super) fn ask() -> bool {
    let outer = env::var(ASK).ok().and_then(|pid| pid.parse().ok());
    let outer = outer.and_then(Pid::from_raw);
    let near = outer.filter(|outer| getsid(Some(*outer)) == getsid(None));
    near.is_some_and(|outer| kill_process(outer, Signal::TTIN).is_ok())
}

/// Lets this process write to the terminal and take it back while the program has it. Call it
/// before there are threads, which inherit the signal mask.
pub(crate) fn prepare() {
    if let Err(error) = ttou().thread_block() {
        tracing::debug!("SIGTTOU cannot be blocked: {error}");
    }
}

/// Calls `start` with the signal mask from before [`prepare`], which the program inherits.
pub(super) fn unprepared<T>(start: impl FnOnce() -> T) -> T {
    // A valid set never fails.
    let _ = ttou().thread_unblock();
    let started = start();
    let _ = ttou().thread_block();
    started
}

fn ttou() -> SigSet {
    SigSet::from(Masked::SIGTTOU)
}

/// The terminal of a program. Dropping it takes the terminal back.
#[derive(Debug, Default)]
pub(super) struct Terminal {
    given: Option<Given>,
    /// Keep the settings that the program made.
    keep_mode: bool,
}

#[derive(Debug)]
struct Given {
    terminal: File,
    mode: Option<Termios>,
}

impl Terminal {
    /// Gives the terminal to `group` if the group of this process has it. Returns whether `group`
    /// has it now.
    pub(super) fn give(&mut self, group: Pid) -> bool {
        let terminal = match &self.given {
            Some(given) => given.terminal.try_clone(),
            None => File::options().read(true).write(true).open(TERMINAL),
        };
        let Ok(terminal) = terminal else {
            return false;
        };
        match tcgetpgrp(&terminal) {
            Ok(holder) if holder == group => return true,
            Ok(holder) if holder == getpgrp() => {}
            _ => return false,
        }
        let mode = tcgetattr(&terminal).ok();
        if let Err(error) = tcsetpgrp(&terminal, group) {
            tracing::debug!("the terminal cannot be given to the program: {error}");
            return false;
        }
        self.given.get_or_insert(Given { terminal, mode });
        true
    }

    /// The program exited normally: its terminal settings are meant to stay, as those of `stty`.
    pub(super) fn keep_mode(&mut self) {
        self.keep_mode = true;
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let Some(Given { terminal, mode }) = self.given.take() else {
            return;
        };
        // This fails only if the terminal is gone.
        let own = getpgrp();
        let _ = tcsetpgrp(&terminal, own);
        if let (Some(mode), false) = (mode, self.keep_mode) {
            let _ = tcsetattr(&terminal, OptionalActions::Drain, &mode);
        }
        // The system may have stopped other processes of this group that read meanwhile.
        let _ = kill_process_group(own, Signal::CONT);
    }
}
