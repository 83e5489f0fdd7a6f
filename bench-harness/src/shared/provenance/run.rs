//! The run and the program that a report comes from.

use serde::{Deserialize, Serialize};

/// The run's identity, and what is needed to repeat it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Unique name of the run; also names the files rendered from it.
    pub id: String,
    /// When the run began, RFC 3339 in UTC.
    pub started_at: String,
    /// Seed of every random choice: arrival times, round orders, key names.
    pub seed: u64,
    /// Arguments the harness was started with, without the program's path.
    pub command_line: Vec<String>,
    /// Name of the scenario file or preset.
    pub scenario: String,
    /// Requested rounds; a cell may have fewer when one failed.
    pub rounds: u32,
}

/// The program that measured, and how it was built.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Harness {
    /// Package version.
    pub version: String,
    /// `git describe --always --dirty` of the checkout that it was built in. Absent outside one.
    pub git_describe: Option<String>,
    /// Compiler, as `rustc --version` prints it.
    pub rust_version: String,
    /// Cargo profile, such as `release`. Only `release` figures should be quoted.
    pub build_profile: String,
}

/// A cell or part that was requested and not measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skipped {
    /// The part that was skipped.
    pub what: String,
    /// What it would need to run.
    pub needs: String,
}
