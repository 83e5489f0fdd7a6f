//! Runs cells: starts servers, workers and the resource, injects faults, and judges the histories.

mod cell;
mod child;
mod cut_replication;
mod deployment_run;
mod fault_context;
mod faults;
mod judge;
pub mod kept;
mod leftovers;
mod load;
mod required;
mod worker_pool;

use std::path::PathBuf;

use locktopus_servers::topology::{ProviderKind, ServerImage, TopologyError};

pub use cell::{Outcome, run};

/// Settings that all cells of a run share.
#[derive(Clone, Debug)]
pub struct Circumstances {
    /// How servers are started.
    pub provider: ProviderKind,
    /// The image for containers.
    pub image: Option<ServerImage>,
    /// Unique start of every lock's name.
    pub prefix: String,
    /// Seed of every random choice.
    pub seed: u64,
    /// The folder for this run's histories only: those of earlier runs stay.
    pub histories: PathBuf,
    /// Whether histories stay there.
    pub keep_histories: bool,
}

/// Why a cell did not finish.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Servers could not be started or did not come back.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// A worker process failed.
    #[error("a worker process failed: {0}")]
    Worker(String),
    /// No lock was granted any more.
    #[error("no lock was granted for {0:?}: the servers did not recover, or the locks did not")]
    NoGrant(std::time::Duration),
    /// The plan kills a waiter, but no process waits.
    #[error(
        "no other process wants {0}, so no waiter can be killed: the plan needs two processes with a worker for it"
    )]
    NoWaiter(String),
    /// No process of the cell has the worker that was granted the lock.
    #[error("worker {0} was granted a lock and is in no process of this cell")]
    NoSuchWorker(u32),
    /// The deployment has no sentinel.
    #[error("there is no sentinel to ask")]
    NoSentinel,
    /// No other server took over.
    #[error("no other server took over within {0:?}")]
    NoSuccessor(std::time::Duration),
    /// As above, with the reason that the servers logged.
    #[error("{source}; the servers' logs: {said}")]
    Refused {
        /// The error.
        source: Box<Self>,
        /// Lines of their logs.
        said: String,
    },
    /// The history cannot be written or read.
    #[error("cannot keep the history: {0}")]
    History(String),
    /// Histories cannot be kept.
    #[error(transparent)]
    Kept(#[from] crate::shared::file::FileError),
    /// An operation of the system failed.
    #[error("cannot {doing}: {source}")]
    Io {
        /// The operation.
        doing: &'static str,
        /// The cause.
        source: std::io::Error,
    },
}

impl RunError {
    fn io(doing: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { doing, source }
    }
}
