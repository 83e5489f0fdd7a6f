//! The messages between the runner and a worker process.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::failover::plan::{LockGroup, Mode, Subject};

/// The job of a worker process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in super::super) struct Job {
    /// Whose lock.
    pub(in super::super) subject: Subject,
    /// The servers, with every option; several only for a quorum.
    pub(in super::super) urls: Vec<String>,
    /// Name of the safety mode.
    pub(in super::super) mode_name: String,
    /// The safety mode.
    pub(in super::super) mode: Mode,
    /// Start of every lock's name.
    pub(in super::super) prefix: String,
    /// The groups; this process has some of their workers.
    pub(in super::super) groups: Vec<LockGroup>,
    /// This process's workers.
    pub(in super::super) workers: Vec<Assignment>,
    /// The address of the resource.
    pub(in super::super) resource: SocketAddr,
    /// The file to record to; it must not exist.
    pub(in super::super) history: PathBuf,
    /// Seed of this process's choices.
    pub(in super::super) seed: u64,
    /// How long one attempt may wait.
    pub(in super::super) patience: Duration,
}

/// One worker, and the lock that it wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct Assignment {
    /// Its number in the history.
    pub(in super::super) number: u32,
    /// Index of the group.
    pub(in super::super) group: usize,
    /// Name of the lock.
    pub(in super::super) lock: String,
}

/// A worker process's message.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum Answer {
    /// Connected, and at work.
    Ready,
    /// An attempt failed. Sent at once, because a killed process says nothing at its end.
    Erred {
        /// Why, in words that are counted.
        kind: String,
    },
    /// Finished, and everything is recorded.
    Done {
        /// Releases and tasks that were abandoned at the end.
        abandoned: u64,
    },
    /// Could not continue.
    Failed {
        /// Why.
        reason: String,
    },
}

impl Answer {
    /// Sends it to the runner.
    pub(super) fn say(&self) {
        // If this fails, the runner is gone.
        if let Ok(mut line) = serde_json::to_string(self) {
            // In one piece, so that a kill cannot cut a line in two.
            line.push('\n');
            let mut out = std::io::stdout().lock();
            let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
        }
    }
}
