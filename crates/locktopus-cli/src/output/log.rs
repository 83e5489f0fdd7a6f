//! Prints the library's log on standard error.

use std::io::{self, IsTerminal as _, Write};

use serde::Serialize;
use tracing::Metadata;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::{Format, colours_wanted, complain, json};

/// The log target of the connect-time checks, which log dangers as errors.
const CHECKS: &str = "locktopus::connect";

/// The log target of lost locks. The commands report these themselves.
const LOSSES: &str = "locktopus_core::engine::holding::watchdog";

/// Writes each line of the log to standard error, as JSON if wanted.
struct Lines(Format);

/// One line of the log.
struct Line {
    format: Format,
    level: &'static str,
}

#[derive(Serialize)]
struct Logged<'a> {
    level: &'a str,
    message: &'a str,
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        let format = self.0;
        Line { format, level: "" }
    }

    fn make_writer_for(&'a self, of: &Metadata<'_>) -> Line {
        let (format, level) = (self.0, of.level().as_str());
        Line { format, level }
    }
}

impl Write for Line {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.format == Format::Text {
            return io::stderr().write(line);
        }
        let (level, text) = (self.level, String::from_utf8_lossy(line));
        let message = text.trim().trim_start_matches(level).trim_start();
        complain(&json(&Logged { level, message }));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Turns the log on. `checks` is the level of the connect-time checks.
pub(crate) fn log(format: Format, level: LevelFilter, checks: LevelFilter) {
    let ansi = format == Format::Text && io::stderr().is_terminal() && colours_wanted();
    let losses = match level {
        LevelFilter::WARN => LevelFilter::ERROR,
        level => level,
    };
    tracing_subscriber::fmt()
        .with_writer(Lines(format))
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
                .with_target(CHECKS, checks)
                .with_target(LOSSES, losses),
        )
        .init();
}
