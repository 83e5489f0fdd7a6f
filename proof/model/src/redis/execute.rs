//! Runs one command on a server, unless the server refuses it.

use crate::redis::reply::{Outcome, Refusal, Reply};
use crate::redis::server::{Role, Server, Unsupported};
use crate::redis::table::{self, Command};
use crate::redis::value::Bytes;

pub(crate) const READONLY: &str = "READONLY You can't write against a read only replica.";
pub(crate) const NO_REPLICAS: &str = "NOREPLICAS Not enough good replicas to write.";

pub(crate) const OUT_OF_MEMORY: &str = "OOM command not allowed when used memory > 'maxmemory'.";

impl Server {
    /// Runs a command outside scripts.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] if the model does not know the command or one of its options.
    pub fn command(&mut self, words: &[Vec<u8>]) -> Result<Reply, Unsupported> {
        let command = find(words)?;
        if !command.fits(words.len()) {
            let error = format!(
                "ERR wrong number of arguments for '{}' command",
                command.name
            );
            return Ok(Reply::Error(error));
        }
        if let Some(error) = self.refuses(command) {
            return Ok(Reply::Error(error.to_owned()));
        }
        finish(self.execute(command, words))
    }

    fn refuses(&self, command: &Command) -> Option<&'static str> {
        let writes = command.writes();
        if command.needs_memory() && self.out_of_memory {
            return Some(OUT_OF_MEMORY);
        }
        if writes && self.role == Role::Replica {
            return Some(READONLY);
        }
        (writes && self.lacks_replicas).then_some(NO_REPLICAS)
    }

    /// Runs a command that was already checked.
    pub(crate) fn execute(&mut self, command: &Command, words: &[Bytes]) -> Outcome {
        let keys = command.keys(words);
        // Access to an expired key removes it, so a read may change a key too.
        let now = self.expiry_now();
        for key in &words[keys.clone()] {
            let changes = command.writes() || self.keys.has_expired(key, now);
            if changes && !self.touched.contains(key) {
                self.touched.insert(key.clone());
            }
        }
        (command.run)(self, words)
    }
}

/// Finds a command by its first word.
pub(crate) fn find(words: &[Bytes]) -> Result<&'static Command, Unsupported> {
    let name = words.first().map(Vec::as_slice).unwrap_or_default();
    table::lookup(name).ok_or_else(|| Unsupported {
        what: format!("the command {:?}", String::from_utf8_lossy(name)),
    })
}

fn finish(outcome: Outcome) -> Result<Reply, Unsupported> {
    match outcome {
        Ok(reply) => Ok(reply),
        Err(Refusal::Error(error)) => Ok(Reply::Error(error)),
        Err(Refusal::Unsupported(what)) => Err(Unsupported { what }),
    }
}
