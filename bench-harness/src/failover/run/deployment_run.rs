//! The result of one deployment of a cell, as the runner passes it to the judge.

use std::collections::BTreeMap;
use std::path::PathBuf;

use locktopus_history::{Leftovers, LostUpdates};

use super::fault_context::Marked;
use super::worker_pool::Finished;

/// The result of one deployment.
#[derive(Debug, Default)]
pub(super) struct DeploymentRun {
    pub(super) histories: Vec<PathBuf>,
    pub(super) prefix: String,
    /// The process of each worker.
    pub(super) process_of: BTreeMap<u32, usize>,
    pub(super) marks: Vec<Marked>,
    pub(super) finished: Finished,
    pub(super) lost: LostUpdates,
    pub(super) leftovers: Option<Leftovers>,
    pub(super) trouble: Vec<String>,
    pub(super) server: String,
}
