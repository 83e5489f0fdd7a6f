//! Where tickets are between two commands.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use locktopus::LeaseTicket;

use crate::exit::Exit;
use crate::failure::Failure;

/// The variable that a ticket is read from.
const VARIABLE: &str = "LOCKTOPUS_TICKET";

/// Where the ticket is read from: a file, else the variable `LOCKTOPUS_TICKET`, else standard input.
#[derive(Args, Debug)]
pub(super) struct TicketArgs {
    /// Read the ticket from this file; without it from the variable LOCKTOPUS_TICKET, else from standard input
    #[arg(long, value_name = "FILE")]
    ticket_file: Option<PathBuf>,
}

impl TicketArgs {
    pub(super) fn read(&self) -> Result<LeaseTicket, Failure> {
        let text = match (&self.ticket_file, std::env::var(VARIABLE)) {
            (Some(path), _) => {
                std::fs::read_to_string(path).map_err(|error| failed(path, &error))?
            }
            (None, Ok(text)) => text,
            (None, Err(_)) => {
                let mut text = String::new();
                let read = std::io::stdin().take(64 * 1024).read_to_string(&mut text);
                read.map_err(|error| {
                    let problem = format!("cannot read a ticket from standard input: {error}");
                    Failure::new(Exit::Usage, problem)
                })?;
                text
            }
        };
        Ok(text.parse()?)
    }

    /// Removes the file of a ticket that is used up.
    pub(super) fn forget(&self) {
        if let Some(path) = &self.ticket_file
            && let Err(error) = std::fs::remove_file(path)
        {
            tracing::warn!("{} could not be removed: {error}", path.display());
        }
    }
}

/// A file that a ticket goes into.
pub(super) struct Store {
    path: PathBuf,
    file: File,
}

/// Makes the file before the lock is taken, so that a bad path costs no lock.
pub(super) fn create(path: &Path) -> Result<Store, Failure> {
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(path);
    let file = file.map_err(|error| failed(path, &error))?;
    let path = path.to_owned();
    Ok(Store { path, file })
}

impl Store {
    pub(super) fn write(&mut self, ticket: &str) -> Result<(), Failure> {
        let written = writeln!(self.file, "{ticket}").and_then(|()| self.file.sync_all());
        written.map_err(|error| failed(&self.path, &error))
    }
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("{}: {error}", path.display()))
}
