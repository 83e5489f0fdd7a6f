//! One file per subcommand.

pub mod cli;
mod error;
pub mod exit;
pub mod failover;
pub mod failover_judge;
pub mod failover_report;
mod files;
pub mod pages;
mod peers;
pub mod report;
pub mod run;
mod servers;
pub mod soak;
pub mod targets;
mod text;
pub mod topology;

use std::io::{ErrorKind, Write as _};

pub use error::CommandError;

/// Writes `text` to standard output. It is not an error if the reader closes the pipe (`| head`).
fn print(text: &str) -> Result<(), CommandError> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(source) if source.kind() != ErrorKind::BrokenPipe => Err(CommandError::Write {
            path: "standard output".into(),
            source,
        }),
        _ => Ok(()),
    }
}
