//! The worker processes of one deployment.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::child::Process;
use super::{Circumstances, RunError};
use crate::failover::plan::{Cell, Subject};
use crate::failover::worker::{Assignment, Job};
use crate::shared::locking::Client;

/// How long one attempt may wait: longer than any fault here blocks all of them.
const PATIENCE: Duration = Duration::from_secs(30);
/// Worker numbers of each deployment; replacements of killed workers get the higher ones.
const NUMBERS: u32 = 100_000;

/// The processes of one deployment, and how to replace them.
#[derive(Debug)]
pub(super) struct WorkerPool {
    pub(super) processes: Vec<Process>,
    directory: PathBuf,
    next_number: u32,
    ended: Ended,
}

/// The results that a pool leaves behind.
#[derive(Debug, Default)]
pub(super) struct Ended {
    pub(super) finished: Finished,
    pub(super) histories: Vec<PathBuf>,
    /// Processes that did not end in order, each with what is known about it.
    pub(super) trouble: Vec<String>,
}

/// The workers' reports, including those of killed processes.
#[derive(Debug, Default)]
pub(super) struct Finished {
    /// Failed attempts, by reason.
    pub(super) errors: BTreeMap<String, u64>,
    /// Releases and tasks that were abandoned at the end.
    pub(super) abandoned: u64,
}

impl WorkerPool {
    /// Starts the processes; each has a share of every lock's workers.
    pub(super) async fn start(
        cell: &Cell,
        deployment: u32,
        urls: &[String],
        prefix: &str,
        resource: SocketAddr,
        all: &Circumstances,
        directory: &Path,
    ) -> Result<Self, RunError> {
        let mut pool = Self {
            processes: Vec::new(),
            directory: directory.to_owned(),
            next_number: NUMBERS * (deployment + 1) + 1,
            ended: Ended::default(),
        };
        let processes = cell.scenario.processes;
        let mut shares: Vec<Vec<Assignment>> = vec![Vec::new(); processes as usize];
        let mut turn = 0;
        for (index, group) in cell.scenario.groups.iter().enumerate() {
            for lock in group.lock_names(prefix) {
                for _ in 0..group.workers {
                    let number = pool.number();
                    shares[turn % processes as usize].push(Assignment {
                        number,
                        group: index,
                        lock: lock.clone(),
                    });
                    turn += 1;
                }
                // So that the first worker of each lock is not always in the same process.
                turn += 1;
            }
        }
        shares.retain(|workers| !workers.is_empty());
        for (process, workers) in shares.into_iter().enumerate() {
            let seed = all
                .seed
                .wrapping_mul(31)
                .wrapping_add(u64::from(deployment) << 32 | process as u64);
            let job = Job {
                subject: cell.subject,
                urls: urls
                    .iter()
                    .map(|url| cell.mode.url(url, &options_of(cell, process)))
                    .collect(),
                mode_name: cell.mode_name.clone(),
                mode: cell.mode.clone(),
                prefix: prefix.to_owned(),
                groups: cell.scenario.groups.clone(),
                workers,
                resource,
                history: pool.new_history(),
                seed,
                patience: PATIENCE,
            };
            pool.processes.push(Process::start(job).await?);
        }
        Ok(pool)
    }

    /// Index of the process with this worker.
    pub(super) fn of_worker(&self, worker: u32) -> Option<usize> {
        self.processes
            .iter()
            .position(|process| process.numbers().contains(&worker))
    }

    /// Kills a process and starts another one for the same locks, with new numbers.
    pub(super) async fn replace(&mut self, index: usize) -> Result<(), RunError> {
        self.kill(index).await?;
        self.revive(index).await
    }

    /// Kills a process, which must have lived until now.
    pub(super) async fn kill(&mut self, index: usize) -> Result<(), RunError> {
        let killed = self.processes[index].kill().await;
        self.note_errors(index);
        killed
    }

    /// Adds up the errors that a process has reported so far.
    fn note_errors(&mut self, index: usize) {
        for (kind, count) in std::mem::take(&mut self.processes[index].errors) {
            *self.ended.finished.errors.entry(kind).or_default() += count;
        }
    }

    /// Starts a process in place of a killed one.
    pub(super) async fn revive(&mut self, index: usize) -> Result<(), RunError> {
        let mut job = self.processes[index].job.clone();
        job.history = self.new_history();
        for worker in &mut job.workers {
            worker.number = self.number();
        }
        self.processes[index] = Process::start(job).await?;
        Ok(())
    }

    /// Has all processes release everything. A problem with one process is noted, and the others
    /// still report.
    pub(super) async fn stop(mut self) -> Ended {
        let mut told = Vec::new();
        for process in &mut self.processes {
            process.thaw();
            told.push(process.stop().await);
        }
        for (index, told) in told.into_iter().enumerate() {
            let process = &mut self.processes[index];
            // A process that the plan killed and did not replace has reported everything.
            if process.is_over {
                continue;
            }
            let ended = match told {
                Ok(()) => process.finished().await,
                Err(error) => Err(error),
            };
            match ended {
                Ok(abandoned) => self.ended.finished.abandoned += abandoned,
                Err(error) => {
                    // No process may write to a history that is being read.
                    let _ = process.kill().await;
                    let trouble = format!("process {index}: {error}");
                    self.ended.trouble.push(trouble);
                }
            }
            self.note_errors(index);
        }
        self.ended
    }

    fn number(&mut self) -> u32 {
        self.next_number += 1;
        self.next_number
    }

    fn new_history(&mut self) -> PathBuf {
        let name = format!("process-{}.jsonl", self.ended.histories.len());
        let path = self.directory.join(name);
        self.ended.histories.push(path.clone());
        path
    }
}

/// The client name of a process on the servers, before its number, so that faults can tell
/// processes apart.
pub(super) const PROCESS: &str = "process-";

/// Options that the harness adds to every URL of a process.
fn options_of(cell: &Cell, process: usize) -> String {
    let options = options(cell);
    match cell.subject {
        Subject::Locktopus => format!("{options}&client_name={PROCESS}{process}"),
        _ => options,
    }
}

/// Options that the harness adds to every URL.
pub(super) fn options(cell: &Cell) -> String {
    // The plan intends what the checks at connect time would complain about. The short times keep
    // traces on other people's servers brief.
    let client = match cell.client {
        Client::Fred => "fred",
        Client::RedisRsRouter => "redis&router=client",
        Client::RedisRs | Client::Memory | Client::Redisson => "redis",
    };
    format!("client={client}&checks=off&token_retention=10m")
}

#[cfg(test)]
mod tests {
    use super::super::child::tests::{ERRED, heard, process};
    use super::*;

    const DONE: &str = r#"read -r stop; say '{"done":{"abandoned":1}}'"#;

    async fn pool(does: &[String]) -> WorkerPool {
        let mut pool = WorkerPool {
            processes: Vec::new(),
            directory: PathBuf::new(),
            next_number: 1,
            ended: Ended::default(),
        };
        for does in does {
            pool.processes.push(process(does).await);
        }
        pool
    }

    /// The plan kills one process and one dies. Two get the order to stop, and one of them fails.
    #[tokio::test]
    async fn the_end_of_one_process_is_not_that_of_the_others() {
        let failed = r#"read -r stop; say '{"failed":{"reason":"no disk"}}'; exit 1"#;
        let mut pool = pool(&[
            format!("{ERRED}; exec sleep 600"),
            format!("{ERRED}; kill -9 $$"),
            format!("{ERRED}; {failed}"),
            format!("{ERRED}; {DONE}"),
        ])
        .await;
        heard(&pool.processes[0], 1).await;
        pool.kill(0).await.unwrap();
        let ended = pool.stop().await;
        assert_eq!(ended.finished.errors, [("no answer".to_owned(), 4)].into());
        assert_eq!(ended.finished.abandoned, 1);
        let [died, cannot] = ended.trouble.as_slice() else {
            panic!("{:?}", ended.trouble);
        };
        assert!(died.starts_with("process 1: "), "{died}");
        let names_it = cannot.starts_with("process 2: ") && cannot.contains("no disk");
        assert!(names_it, "{cannot}");
    }
}
