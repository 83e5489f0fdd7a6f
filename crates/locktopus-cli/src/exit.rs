//! Exit codes, all in one place.

use rustix::process::Signal;

/// Exit codes of `locktopus`. They follow `sysexits.h` where that has a code, because programs
/// under `run` do not return those by accident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done.
    Ok = 0,
    /// A failure without a code of its own.
    Failed = 1,
    /// The command line is wrong. clap uses the same code.
    Usage = 2,
    /// The servers are unreachable, refuse the login, or send unexpected answers.
    Unavailable = 69,
    /// Someone else holds the lock, and it did not become free in time.
    Busy = 75,
    /// The lock was held and then lost.
    Lost = 76,
    /// A permission is missing.
    Denied = 77,
    /// The configuration is unusable.
    Config = 78,
    /// The program exists but cannot be started.
    CannotStart = 126,
    /// There is no such program.
    NoProgram = 127,
    /// The reader closed the pipe. Shells report 141 for a process ended by `PIPE`.
    NoReader = 141,
}

impl Exit {
    /// One word for each code, for programs that read JSON.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::Unavailable => "unavailable",
            Self::Busy => "busy",
            Self::Lost => "lost",
            Self::Denied => "denied",
            Self::Config => "config",
            Self::CannotStart => "cannot_start",
            Self::NoProgram => "no_program",
            Self::NoReader => "no_reader",
        }
    }

    pub(crate) fn code(self) -> u8 {
        self as u8
    }
}

/// The code that shells report for a process ended by this signal.
pub(crate) fn of_signal(signal: Signal) -> u8 {
    u8::try_from(signal.as_raw()).map_or(u8::MAX, |number| number.saturating_add(128))
}

/// The table of exit codes, shown below `--help`.
pub(crate) const HELP: &str = "Exit codes:
    0  done
    1  any other failure; doctor: locks can be lost silently, or none can be taken; failover watch: a promise was broken, or too little was seen
    2  wrong usage
   69  the servers are unreachable, refuse the login, or send unexpected answers
   75  busy: someone else holds the lock, and it did not become free in time
   76  lost: the lock was held, and then lost
   77  a permission is missing: doctor --acl prints all that locks need
   78  the configuration is unusable
  126  run, leader, job: the program cannot be started
  127  run, leader, job: there is no such program
  128+N  ended by signal N; 141 also: the reader of the output is gone
  run returns the code of its program, unless the lock was busy or lost.";
