//! What the process returns, in one place.

use std::process::ExitCode;

/// Exit codes of `locktopus-bench`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done; for `compare` without `--fail-above`, whatever the comparison says.
    Ok = 0,
    /// `compare --fail-above`: the second run fails the gate. `failover-judge`: another verdict
    /// than then.
    Regression = 1,
    /// The command line does not make sense; clap's own code.
    Usage = 2,
    /// An input file is missing, damaged, or of another schema version; `compare --fail-above`,
    /// `targets --write`: a run in it is incomplete.
    Input = 3,
    /// A result could not be written.
    Output = 4,
    /// A measurement found two holders of one lock; `failover`: a lock broke a promise.
    Overlap = 5,
    /// A measurement could not be made although what it needs was there, or measured nothing;
    /// `failover`: a cell was not run to its end; `failover-judge`: histories are missing, or
    /// empty. See
    /// [`measure::completeness`](crate::measure::completeness) and [`failover::completeness`](crate::failover::completeness).
    Measurement = 6,
    /// `targets`: what was measured does not reach a target, or was not measured. `soak`: a limit
    /// was not kept.
    Unmet = 8,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The table of codes, shown below `--help`.
pub const HELP: &str = "Exit codes:
  0  done
  1  compare --fail-above: the second run is worse, or one lacks a cell; failover-judge: another verdict than then
  2  wrong usage
  3  an input file cannot be used; compare --fail-above, targets --write: a run is incomplete
  4  a result cannot be written
  5  two holders of one lock were found while measuring; failover, failover-judge: a lock broke a promise
  6  a measurement failed, or is empty; failover: a cell was not run to its end; failover-judge: histories are
     not all of their cell, or nothing was granted
  8  targets: a target was not met, or not measured; soak: a limit was not kept";
