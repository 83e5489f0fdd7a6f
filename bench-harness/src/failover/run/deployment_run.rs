//! The result of one deployment of a cell, as the runner passes it to the judge.

use std::collections::BTreeMap;
use std::path::PathBuf;

use locktopus_history::{Leftovers, LostUpdates};

use super::worker_pool::Finished;

/// The result of one deployment.
#[derive(Debug, Default)]
pub(super) struct DeploymentRun {
    pub(super) histories: Vec<PathBuf>,
    pub(super) prefix: String,
    pub(super) happened: BTreeMap<String, u64>,
    pub(super) finished: Finished,
    pub(super) lost: LostUpdates,
    pub(super) leftovers: Option<Leftovers>,
    pub(super) trouble: Vec<String>,
    pub(super) server: String,
}
