//! Stores tickets between two commands.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use locktopus::LeaseTicket;

use crate::exit::Exit;
use crate::failure::Failure;

/// The variable to read a ticket from.
const VARIABLE: &str = "LOCKTOPUS_TICKET";

/// Maximum size of a ticket file, in bytes.
const LONGEST: u64 = 64 * 1024;

/// Where to read the ticket.
#[derive(Args, Debug)]
pub(super) struct TicketArgs {
    /// Read the ticket from this file. Default: the variable LOCKTOPUS_TICKET, else standard input
    #[arg(long, value_name = "FILE")]
    ticket_file: Option<PathBuf>,
}

impl TicketArgs {
    pub(super) fn read(&self) -> Result<LeaseTicket, Failure> {
        let (text, source) = match (&self.ticket_file, std::env::var(VARIABLE)) {
            (Some(path), _) => (
                std::fs::read_to_string(path).map_err(|error| failed(path, &error))?,
                path.display().to_string(),
            ),
            (None, Ok(text)) => (text, VARIABLE.to_owned()),
            (None, Err(_)) => {
                let mut text = String::new();
                let read = std::io::stdin().take(LONGEST).read_to_string(&mut text);
                read.map_err(|error| {
                    let problem = format!("cannot read a ticket from standard input: {error}");
                    Failure::new(Exit::Usage, problem)
                })?;
                (text, "standard input".to_owned())
            }
        };
        if text.trim().is_empty() {
            return Err(Failure::usage(format!(
                "there is no ticket: {source} is empty; give the ticket that lock printed or wrote, by --ticket-file FILE, \
                 by the variable {VARIABLE}, or on standard input"
            )));
        }
        Ok(text.parse()?)
    }

    /// Removes the file of a used ticket.
    pub(super) fn forget(&self) {
        if let Some(path) = &self.ticket_file
            && let Err(error) = std::fs::remove_file(path)
        {
            tracing::warn!("cannot remove {}: {error}", path.display());
        }
    }
}

/// The file for a ticket. It has a temporary name until the ticket is written. Dropping it removes
/// the temporary file.
pub(super) struct TicketFile {
    path: PathBuf,
    draft: PathBuf,
    file: File,
}

/// The current content of the ticket file.
pub(super) enum Content {
    /// Nothing, or an empty file.
    Nothing,
    /// A ticket.
    Ticket(LeaseTicket),
}

impl TicketFile {
    /// Creates the temporary file. Done before the lock is taken, so a bad path costs no lock.
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        let draft = format!("{}.{}.new", path.display(), std::process::id());
        let draft = PathBuf::from(draft);
        // A killed process with the same id may have left it.
        let _ = std::fs::remove_file(&draft);
        let mut options = OpenOptions::new();
        let file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft);
        let file = file.map_err(|error| failed(path, &error))?;
        let path = path.to_owned();
        Ok(Self { path, draft, file })
    }

    /// Reads the file. Fails if it is not a ticket, because writing one would destroy it.
    pub(super) fn content(&self) -> Result<Content, Failure> {
        let no_ticket = || {
            let problem = format!(
                "{} exists and is not a ticket; use another --ticket-file",
                self.path.display()
            );
            Failure::new(Exit::Failed, problem)
        };
        match std::fs::symlink_metadata(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Content::Nothing),
            Err(error) => return Err(failed(&self.path, &error)),
            Ok(found) if !found.is_file() || found.len() > LONGEST => return Err(no_ticket()),
            Ok(_) => {}
        }
        let text =
            std::fs::read_to_string(&self.path).map_err(|error| failed(&self.path, &error))?;
        if text.trim().is_empty() {
            return Ok(Content::Nothing);
        }
        text.parse().map(Content::Ticket).map_err(|_| no_ticket())
    }

    /// The error for a ticket that must stay.
    pub(super) fn in_use(&self, why: &str) -> Failure {
        let path = self.path.display();
        let problem =
            format!("{path} is the ticket {why}; unlock that first, or use another --ticket-file");
        Failure::new(Exit::Failed, problem)
    }

    /// Writes the ticket and renames the file.
    pub(super) fn write(&mut self, ticket: &str) -> Result<(), Failure> {
        let written = writeln!(self.file, "{ticket}")
            .and_then(|()| self.file.sync_all())
            .and_then(|()| std::fs::rename(&self.draft, &self.path));
        written.map_err(|error| failed(&self.path, &error))
    }

    /// Removes the written ticket.
    pub(super) fn remove(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Drop for TicketFile {
    fn drop(&mut self) {
        // Does nothing if the file was renamed.
        let _ = std::fs::remove_file(&self.draft);
    }
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("{}: {error}", path.display()))
}
