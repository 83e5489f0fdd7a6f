//! The errors that end a subcommand.

use std::path::PathBuf;

use crate::cmd::exit::Exit;
use crate::measure::model::{HistogramError, LoadError};
use crate::measure::report::html::HtmlError;

/// Why a subcommand stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// An input file cannot be used.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A stored histogram is damaged.
    #[error(transparent)]
    Histogram(#[from] HistogramError),
    /// The list of targets is bad.
    #[error(transparent)]
    Targets(#[from] crate::measure::targets::TargetError),
    /// Runs cannot be summarised, or a summary cannot be used.
    #[error(transparent)]
    Summary(#[from] crate::measure::summary::SummaryError),
    /// A page template could not be rendered.
    #[error("cannot fill the page: {0}")]
    Page(#[from] askama::Error),
    /// The HTML report could not be made.
    #[error(transparent)]
    Html(#[from] HtmlError),
    /// A CSV could not be made.
    #[error("cannot write CSV: {0}")]
    Csv(#[from] csv::Error),
    /// A result could not be written.
    #[error("cannot write {path}: {source}", path = .path.display())]
    Write {
        /// Where to.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// There is nothing to measure, or the scenario file is bad.
    #[error(transparent)]
    Plan(#[from] crate::measure::plan::PlanError),
    /// There is nothing to do, or the failover plan is bad.
    #[error(transparent)]
    FailoverPlan(#[from] crate::failover::plan::PlanError),
    /// A stored failover report cannot be used.
    #[error(transparent)]
    FailoverReport(#[from] crate::failover::model::ReadError),
    /// Kept histories cannot be judged.
    #[error(transparent)]
    Kept(#[from] crate::failover::run::kept::KeptError),
    /// The servers could not be started or stopped.
    #[error(transparent)]
    Place(#[from] crate::measure::run::PlaceError),
    /// The servers could not be started or stopped.
    #[error(transparent)]
    Topology(#[from] locktopus_servers::topology::TopologyError),
    /// A measurement failed.
    #[error(transparent)]
    Run(#[from] crate::measure::run::RunError),
    /// A soak failed.
    #[error(transparent)]
    Soak(#[from] crate::soak::SoakError),
    /// Other work keeps the machine busy.
    #[error(
        "load average {load:.2}: not started, because figures from a busy machine show the machine; --idle allows at most 1.0"
    )]
    Busy {
        /// The load average over a minute.
        load: f64,
    },
    /// Ctrl-C.
    #[error("interrupted; nothing was written")]
    Interrupted,
    /// The arguments do not fit together.
    #[error("{0}")]
    Usage(String),
}

impl CommandError {
    /// The exit code for this error.
    #[must_use]
    pub const fn exit(&self) -> Exit {
        match self {
            Self::Load(_)
            | Self::Histogram(_)
            | Self::Html(_)
            | Self::FailoverReport(_)
            | Self::Kept(_)
            | Self::Targets(_)
            | Self::Summary(_) => Exit::Input,
            Self::Csv(_) | Self::Write { .. } | Self::Page(_) => Exit::Output,
            Self::Usage(_) | Self::Plan(_) | Self::FailoverPlan(_) => Exit::Usage,
            Self::Place(_)
            | Self::Topology(_)
            | Self::Run(_)
            | Self::Soak(_)
            | Self::Busy { .. }
            | Self::Interrupted => Exit::Measurement,
        }
    }
}
