//! Prints the library's log on standard error.

use std::io::{self, IsTerminal as _};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::colours_wanted;

/// The log target of the connect-time checks, which log dangers as errors.
const CHECKS: &str = "locktopus::connect";

/// Turns the log on. `checks` is the level of the connect-time checks.
pub(crate) fn log(level: LevelFilter, checks: LevelFilter) {
    let ansi = io::stderr().is_terminal() && colours_wanted();
    tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_max_level(level.max(checks))
        .with_ansi(ansi)
        .with_target(false)
        .without_time()
        // They go to standard error too, and would end the process if its reader is gone.
        .log_internal_errors(false)
        .finish()
        .with(
            Targets::new()
                .with_default(level)
                .with_target(CHECKS, checks),
        )
        .init();
}
