//! What the process returns, in one place.

use rustix::process::Signal;

/// Exit codes of `locktopus`. From the range of `sysexits.h` where it has a word for it, because
/// those are not what programs under `run` return by accident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done.
    Ok = 0,
    /// Something failed for which there is no code of its own.
    Failed = 1,
    /// The command line does not make sense; clap's own code.
    Usage = 2,
    /// The servers cannot be reached, refuse the login, or do not answer as they should.
    Unavailable = 69,
    /// Somebody else holds the lock, and it did not become free in time.
    Busy = 75,
    /// The lock was held and lost.
    Lost = 76,
    /// A right is missing.
    Denied = 77,
    /// The configuration cannot be used.
    Config = 78,
    /// `run`: the program is there and cannot be started.
    CannotStart = 126,
    /// `run`: there is no such program.
    NoProgram = 127,
    /// Whoever read the answer went away; what shells say of a process that `PIPE` ended.
    NoReader = 141,
}

impl Exit {
    /// One word, for programs that read JSON.
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

/// What shells say of a process that a signal ended.
pub(crate) fn of_signal(signal: Signal) -> u8 {
    u8::try_from(signal.as_raw()).map_or(u8::MAX, |number| number.saturating_add(128))
}

/// The table of codes, shown below `--help`.
pub(crate) const HELP: &str = "Exit codes:
    0  done
    1  something failed that has no code of its own; doctor: locks can be lost silently, or none can be taken; failover watch: a promise was broken
    2  wrong usage
   69  the servers cannot be reached, refuse the login, or do not answer as they should
   75  busy: somebody else holds the lock, and it did not become free in time
   76  lost: the lock was held, and is not any more
   77  a right is missing
   78  the configuration cannot be used
  126  run: the program cannot be started
  127  run: there is no such program
  128+N  ended by signal N; 141 also: nobody reads the answer any more
  run returns what its program returned, unless the lock was busy or lost.";
