//! The errors that end a subcommand.

use std::path::PathBuf;

use crate::cmd::exit::Exit;
use crate::measure::report::html::HtmlError;
use crate::shared::file::{FileError, PlanError};

/// Why a subcommand stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// An input file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// A part of the plan, a measurement that failed, or one on a busy machine would look like the
    /// whole page.
    #[error("run {run} cannot become a page: {problem}")]
    Unfit {
        /// Which run.
        run: String,
        /// What is missing, or failed.
        problem: String,
    },
    /// A page template could not be rendered.
    #[error("cannot fill the page: {0}")]
    Page(#[from] askama::Error),
    /// The HTML report could not be made.
    #[error(transparent)]
    Html(#[from] HtmlError),
    /// A result could not be written.
    #[error("cannot write {path}: {source}", path = .path.display())]
    Write {
        /// Where to.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// There is nothing to run, or the plan is bad.
    #[error(transparent)]
    Plan(#[from] PlanError),
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
            Self::File(_) | Self::Html(_) | Self::Unfit { .. } => Exit::Input,
            Self::Write { .. } | Self::Page(_) => Exit::Output,
            Self::Usage(_) | Self::Plan(_) => Exit::Usage,
            Self::Place(_)
            | Self::Topology(_)
            | Self::Run(_)
            | Self::Soak(_)
            | Self::Busy { .. }
            | Self::Interrupted => Exit::Measurement,
        }
    }
}
