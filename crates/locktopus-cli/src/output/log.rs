//! What the library logs, on standard error.

use std::io::{self, IsTerminal as _};

use tracing::level_filters::LevelFilter;

use super::colours_wanted;

/// Shows what is logged from now on. Warnings are among others what the connect-time checks found.
pub(crate) fn log(level: LevelFilter) {
    let ansi = io::stderr().is_terminal() && colours_wanted();
    tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_max_level(level)
        .with_ansi(ansi)
        .with_target(false)
        .without_time()
        // They would go to standard error, too, and end the process if nobody reads that.
        .log_internal_errors(false)
        .init();
}
