//! What the runner and a worker process say to each other.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::failover::plan::{LockGroup, Mode, Subject};

/// What a worker process is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in super::super) struct Job {
    /// Whose lock.
    pub(in super::super) subject: Subject,
    /// Where; several servers only for a quorum. With every option.
    pub(in super::super) urls: Vec<String>,
    /// Name of the safety mode.
    pub(in super::super) mode_name: String,
    /// The safety mode.
    pub(in super::super) mode: Mode,
    /// Start of every lock's name.
    pub(in super::super) prefix: String,
    /// The groups, of which this process has some workers.
    pub(in super::super) groups: Vec<LockGroup>,
    /// This process's workers.
    pub(in super::super) workers: Vec<Assignment>,
    /// What the locks protect.
    pub(in super::super) resource: SocketAddr,
    /// Where to record; must not exist.
    pub(in super::super) history: PathBuf,
    /// Seed of this process's choices.
    pub(in super::super) seed: u64,
    /// How long one attempt may wait.
    pub(in super::super) patience: Duration,
}

/// One worker: which lock it wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct Assignment {
    /// Number in the history.
    pub(in super::super) number: u32,
    /// Index of the group.
    pub(in super::super) group: usize,
    /// Name of the lock.
    pub(in super::super) lock: String,
}

/// What a worker process says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum Answer {
    /// Connected, and at work.
    Ready,
    /// An attempt failed. Said at once: who is killed says nothing at its end.
    Erred {
        /// Why, in words that are counted.
        kind: String,
    },
    /// Finished, and everything is recorded.
    Done {
        /// Releases and tasks that were given up on at the end.
        abandoned: u64,
    },
    /// Could not go on.
    Failed {
        /// Why.
        reason: String,
    },
}

impl Answer {
    /// Says it to the runner.
    pub(super) fn say(&self) {
        // Nobody left to tell if this fails.
        if let Ok(mut line) = serde_json::to_string(self) {
            // In one piece, whenever this process is killed.
            line.push('\n');
            let mut out = std::io::stdout().lock();
            let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
        }
    }
}
