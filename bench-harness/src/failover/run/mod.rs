//! Runs cells: starts servers, workers and the resource, does the faults, and has the histories
//! judged.

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
mod timeline;
mod worker_pool;

use std::path::PathBuf;

use locktopus_servers::topology::{ProviderKind, ServerImage, TopologyError};

pub use cell::{Outcome, run};

/// What all cells of a run share.
#[derive(Clone, Debug)]
pub struct Circumstances {
    /// How servers are started.
    pub provider: ProviderKind,
    /// The image for containers.
    pub image: Option<ServerImage>,
    /// Servers that run already; nothing is done to them.
    pub url: Option<String>,
    /// How long workers work on such servers.
    pub observe: std::time::Duration,
    /// Unique start of every lock's name.
    pub prefix: String,
    /// Seed of every random choice.
    pub seed: u64,
    /// Where this run's histories go, and no other's: what an earlier run kept stays.
    pub histories: PathBuf,
    /// Whether histories stay there.
    pub keep_histories: bool,
}

/// Why a cell could not be run to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Servers could not be started or did not come back.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// A worker process failed.
    #[error("a worker process failed: {0}")]
    Worker(String),
    /// Nobody was granted a lock any more.
    #[error(
        "nobody was granted a lock for {0:?}: the servers did not recover, or the locks did not"
    )]
    NoGrant(std::time::Duration),
    /// A waiter was to be killed where nobody waits.
    #[error(
        "no other process wants {0}, so no waiter can be killed: the plan needs two processes with a worker for it"
    )]
    NoWaiter(String),
    /// Whoever was granted a lock is in none of the processes of the cell.
    #[error("worker {0} was granted a lock and is in no process of this cell")]
    NoSuchWorker(u32),
    /// The deployment has no sentinel.
    #[error("there is no sentinel to ask")]
    NoSentinel,
    /// No other server took over.
    #[error("no other server took over within {0:?}")]
    NoSuccessor(std::time::Duration),
    /// As before, and what the servers said about it.
    #[error("{source}; the servers' word: {said}")]
    Refused {
        /// What was waited for.
        source: Box<Self>,
        /// Lines of their logs.
        said: String,
    },
    /// The history cannot be written or read.
    #[error("cannot keep the history: {0}")]
    History(String),
    /// Histories cannot be kept.
    #[error(transparent)]
    Kept(#[from] kept::KeptError),
    /// Something of the machine failed.
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
