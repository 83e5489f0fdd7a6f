//! The exit codes of the process.

use std::process::ExitCode;

/// Exit codes of `locktopus-bench`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Ok = 0,
    /// `failover-judge`: another verdict. `failover-report --check`: another page.
    Changed = 1,
    /// The command line does not make sense; clap's own code.
    Usage = 2,
    /// An input file is missing, damaged, or of another schema version; `targets --write`: a run in
    /// it is incomplete.
    Input = 3,
    /// A result could not be written.
    Output = 4,
    /// A measurement found two holders of one lock; `failover`: a lock broke a promise.
    Overlap = 5,
    /// A measurement failed although it had what it needs, or measured nothing; `failover`: a cell
    /// did not finish; `failover-judge`: histories are missing, or empty. See
    /// [`measure::completeness`](crate::measure::completeness) and
    /// [`failover::completeness`](crate::failover::completeness).
    Measurement = 6,
    /// `targets`: a figure misses its target, or was not measured. `soak`: a limit was exceeded.
    Unmet = 8,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The table of exit codes below `--help`.
pub const HELP: &str = "Exit codes:
  0  done
  1  failover-judge: the verdict changed; failover-report --check: the page is another one
  2  wrong usage
  3  an input file cannot be used; targets --write: the run is incomplete
  4  a result cannot be written
  5  a measured lock had two holders at once; failover, failover-judge: a lock broke a promise
  6  a measurement failed, or is empty; failover: a cell did not finish; failover-judge: histories are
     missing, or nothing was granted
  8  targets: a target was not met, or not measured; soak: a limit was exceeded";
