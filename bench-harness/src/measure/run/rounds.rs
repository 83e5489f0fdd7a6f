//! Runs tasks round by round.

use std::ffi::OsString;
use std::time::Duration;

use hdrhistogram::Histogram;
use locktopus_history::Clock;

use super::child::Worker;
use super::cost::Counters;
use super::jobs::{Common, duration_ns, exclusion, jobs, subject};
use super::pinned_cores::PinnedCores;
use super::place::Place;
use crate::measure::model::{ClientCost, Occupied, Report};
use crate::measure::plan::{Client, Scenario, Task};
use crate::measure::record::{Recorder, RoundFacts};
use crate::measure::worker::{Answer, Start, monotonic_ns};
use crate::shared::stall::StallWatch;

/// How long workers may take to connect, ping and (for renewal) take locks, besides a warm-up.
const READY_WITHIN: Duration = Duration::from_secs(180);
/// How long workers may take to finish after the measured part.
const DONE_WITHIN: Duration = Duration::from_secs(60);
/// How long they may take to release what they hold.
const END_WITHIN: Duration = Duration::from_secs(60);
/// From the starting signal to the start: every worker must have read the signal by then.
const COUNTDOWN: Duration = Duration::from_millis(30);

/// Why a measurement failed.
#[derive(Debug, thiserror::Error)]
#[error("{task}: {reason}")]
pub struct RunError {
    /// Which one.
    pub task: String,
    /// The reason.
    pub reason: String,
}

/// Runs the tasks of one run.
#[derive(Debug)]
pub struct Runner<'a> {
    /// The cores to use.
    pub cores: &'a PinnedCores,
    /// Start of every lock name, unique to the run.
    pub prefix: String,
    /// Round trips of PING to time in each round.
    pub pings: u32,
    /// Program and arguments of Redisson's worker, if there is one.
    pub redisson: Option<Vec<OsString>>,
}

impl Runner<'_> {
    /// Runs one task once and adds the round to the report.
    ///
    /// # Errors
    ///
    /// [`RunError`] if workers or servers failed. Errors of single acquisitions are data, not
    /// failures.
    pub async fn once(
        &self,
        report: &mut Report,
        place: &Place,
        task: &Task,
        index: u32,
        position: u32,
    ) -> Result<(), RunError> {
        let failed = |reason: String| RunError {
            task: task.describe(),
            reason,
        };
        let scenario = task.scenario.name();
        let common = Common {
            prefix: format!("{}:{scenario}-{index}-{position}", self.prefix),
            pings: self.pings,
            core: self.cores.worker_core(),
        };
        let jobs = jobs(place, task, &common);
        let mut workers = Vec::new();
        for job in &jobs {
            workers.push(
                Worker::spawn(job, self.redisson.as_deref())
                    .await
                    .map_err(failed)?,
            );
        }
        for worker in &mut workers {
            let within = READY_WITHIN + task.warm_up;
            worker.ready(within).await.map_err(failed)?;
        }
        let counters = match task.client {
            Client::Memory => None,
            Client::RedisRs | Client::RedisRsRouter | Client::Fred | Client::Redisson => {
                let urls = place.urls(Client::RedisRs, task.nodes);
                let counters = Counters::connect(&urls, place.is_ours()).await;
                Some(counters.map_err(|error| failed(error.to_string()))?)
            }
        };
        let before = match &counters {
            Some(counters) => counters.read().await,
            None => None,
        };
        let at_ns = monotonic_ns() + u64::try_from(COUNTDOWN.as_nanos()).unwrap_or(0);
        for worker in &mut workers {
            worker.start(Start { at_ns }).await.map_err(failed)?;
        }
        let machine = StallWatch::from_afar(Clock::new());
        let mut sum = Sum::default();
        for worker in &mut workers {
            let answer = worker.done(task.duration + DONE_WITHIN).await;
            sum.add(answer.map_err(failed)?).map_err(failed)?;
        }
        let machine = machine.finish();
        let mut server_cost = None;
        if let Some(counters) = counters {
            let after = counters.read().await;
            server_cost = before
                .zip(after)
                .map(|(before, after)| after.since(&before, task.strategy));
            counters.close().await;
        }
        // In parallel, because each may have much to release.
        futures_util::future::join_all(workers.into_iter().map(|worker| worker.end(END_WITHIN)))
            .await;
        let mut recorder = sum
            .recorder
            .ok_or_else(|| failed("no worker recorded anything".to_owned()))?;
        if matches!(task.scenario, Scenario::HotLock | Scenario::RemoteWaiter) {
            recorder.add_hand_offs(duration_ns(task.duration));
        }
        let facts = RoundFacts {
            index,
            position,
            duration: task.duration,
            workers: task.workers,
            ping: sum.ping,
            server_cost,
            client_cost: sum.cost,
            machine: Some(machine),
            exclusion: exclusion(task.scenario),
        };
        let round = recorder
            .into_round(facts)
            .map_err(|error| failed(error.to_string()))?;
        report.cell_mut(&subject(place, task)).rounds.push(round);
        Ok(())
    }
}

/// The combined answers of all processes of a round.
#[derive(Default)]
struct Sum {
    recorder: Option<Recorder>,
    ping: Option<Histogram<u64>>,
    /// `None` once a process does not report it.
    cost: Option<ClientCost>,
    answers: usize,
}

impl Sum {
    fn add(&mut self, answer: Answer) -> Result<(), String> {
        let Answer::Done {
            recorder,
            ping,
            cost,
        } = answer
        else {
            return Err("a worker ended without a record".to_owned());
        };
        let recorder = Recorder::from_wire(&recorder).map_err(|error| error.to_string())?;
        match &mut self.recorder {
            Some(all) => all.merge(recorder).map_err(|error| error.to_string())?,
            None => self.recorder = Some(recorder),
        }
        if let Some(ping) = ping {
            self.ping = Some(ping.decode().map_err(|error| error.to_string())?);
        }
        self.cost = match (self.answers, self.cost, cost) {
            (0, _, cost) => cost,
            (_, Some(sum), Some(cost)) => Some(together(sum, cost)),
            _ => None,
        };
        self.answers += 1;
        Ok(())
    }
}

fn together(one: ClientCost, other: ClientCost) -> ClientCost {
    let occupied = |one: Occupied, other: Occupied| Occupied {
        bytes: one.bytes + other.bytes,
        by: one.by + other.by,
    };
    ClientCost {
        cpu_ns: one.cpu_ns + other.cpu_ns,
        memory: match (one.memory, other.memory) {
            (Some(one), Some(other)) => Some(occupied(one, other)),
            (memory, None) | (None, memory) => memory,
        },
    }
}
