//! Runs tasks round by round.

use std::ffi::OsString;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::child::Worker;
use super::cost::Counters;
use super::place::Place;
use super::quiet::Quiet;
use crate::model::{Report, Subject};
use crate::plan::{Client, Scenario, Strategy, Task};
use crate::record::{Recorder, RoundFacts};
use crate::worker::{Answer, Job, Start, monotonic_ns};

/// How long workers may take to connect, ping and (for renewal) take their locks; besides a warm-up.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// How long after the measured part workers may take to come back.
const DONE_WITHIN: Duration = Duration::from_secs(60);
/// Between the starting signal and the start: every worker must have read the signal by then.
const COUNTDOWN: Duration = Duration::from_millis(30);

/// Why a measurement could not be made.
#[derive(Debug, thiserror::Error)]
#[error("{task}: {reason}")]
pub struct RunError {
    /// Which one.
    pub task: String,
    /// What happened.
    pub reason: String,
}

/// Runs the tasks of one run.
#[derive(Debug)]
pub struct Runner<'a> {
    /// The cores to use.
    pub quiet: &'a Quiet,
    /// Start of every lock name, unique to the run.
    pub prefix: String,
    /// Round trips of PING to time in each round.
    pub pings: u32,
    /// Program and arguments of Redisson's worker, where there is one.
    pub redisson: Option<Vec<OsString>>,
}

impl Runner<'_> {
    /// Runs one task once and adds the round to the report.
    ///
    /// # Errors
    ///
    /// [`RunError`] if workers or servers failed. Errors of single acquisitions are data, not failures.
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
        let jobs = self.jobs(place, task, index);
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
            Client::RedisRs | Client::Fred | Client::Redisson => {
                let counters = Counters::connect(&place.url(Client::RedisRs)).await;
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
        let (mut all, mut ping): (Option<Recorder>, Option<Histogram<u64>>) = (None, None);
        for worker in workers {
            let answer = worker
                .done(task.duration + DONE_WITHIN)
                .await
                .map_err(failed)?;
            let Answer::Done {
                recorder,
                ping: pings,
            } = answer
            else {
                continue;
            };
            let recorder =
                Recorder::from_wire(&recorder).map_err(|error| failed(error.to_string()))?;
            match &mut all {
                Some(all) => all
                    .merge(recorder)
                    .map_err(|error| failed(error.to_string()))?,
                None => all = Some(recorder),
            }
            if let Some(pings) = pings {
                ping = Some(pings.decode().map_err(|error| failed(error.to_string()))?);
            }
        }
        let mut server_cost = None;
        if let Some(counters) = counters {
            let after = counters.read().await;
            server_cost = before
                .zip(after)
                .map(|(before, after)| after.since(&before, task.strategy));
            counters.close().await;
        }
        let mut recorder = all.ok_or_else(|| failed("no worker recorded anything".to_owned()))?;
        if task.scenario == Scenario::HotLock {
            recorder.add_hand_offs(duration_ns(task.duration));
        }
        let renewal = task.scenario == Scenario::Renewal;
        let facts = RoundFacts {
            index,
            position,
            duration: task.duration,
            workers: task.workers,
            ping,
            server_cost,
            permits: (!renewal).then_some(1),
        };
        let round = recorder
            .into_round(facts)
            .map_err(|error| failed(error.to_string()))?;
        report.cell_mut(&subject(place, task)).rounds.push(round);
        Ok(())
    }

    fn jobs(&self, place: &Place, task: &Task, index: u32) -> Vec<Job> {
        // Names differ from round to round and task to task, so that nothing is left over from before.
        let unique = format!(
            "{}-{index}-{}-{}",
            task.scenario.name(),
            task.strategy.name(),
            task.kind.name()
        );
        let prefix = format!("{}:{unique}:{}", self.prefix, task.workers);
        let share = |whole: u32, process: u32| {
            let processes = task.processes.max(1);
            whole / processes + u32::from(process < whole % processes)
        };
        let mut first_worker = 0;
        let jobs = (0..task.processes).map(|process| {
            let workers = share(task.workers, process);
            let job = Job {
                scenario: task.scenario,
                strategy: task.strategy,
                client: task.client,
                url: place.url(task.client),
                kind: task.kind,
                prefix: prefix.clone(),
                first_worker,
                workers,
                locks: share(task.locks, process),
                hold_ns: duration_ns(task.hold),
                duration_ns: duration_ns(task.duration),
                interval_ns: duration_ns(task.duration).div_ceil(40).max(1),
                arrivals_per_second: task
                    .arrivals_per_second
                    .map(|rate| (rate * u64::from(workers) / u64::from(task.workers)).max(1)),
                lease_ms: u64::try_from(task.lease.as_millis()).unwrap_or(u64::MAX),
                pings: if process == 0 { self.pings } else { 0 },
                core: self.quiet.worker_core(),
                warm_up_ns: duration_ns(task.warm_up),
            };
            first_worker += workers;
            job
        });
        jobs.collect()
    }
}

fn subject(place: &Place, task: &Task) -> Subject {
    let lock_kind = match task.strategy {
        Strategy::Locktopus | Strategy::Redisson => task.kind.name(),
        Strategy::R1 => "lock",
        Strategy::Rslock => "mutex",
    };
    let mut options = std::collections::BTreeMap::new();
    let mut option = |name: &str, value: String| drop(options.insert(name.to_owned(), value));
    let written = |time| humantime::format_duration(time).to_string();
    if task.scenario == Scenario::Renewal {
        option("lease", written(task.lease));
    }
    if task.strategy == Strategy::Redisson {
        option("JIT warm-up", written(task.warm_up));
    }
    Subject {
        scenario: task.scenario.name().to_owned(),
        strategy: task.strategy.name().to_owned(),
        client: task.client.name().to_owned(),
        topology: place.topology,
        nodes: place.nodes,
        provider: place.provider,
        server: place.server.clone(),
        lock_kind: lock_kind.to_owned(),
        workers: task.workers,
        processes: task.processes,
        locks: task.locks,
        pacing: task.pacing(),
        hold_ns: duration_ns(task.hold),
        // The engine's port map is a process in user space between client and server.
        through_proxy: place.provider == crate::model::Provider::Container,
        options,
    }
}

fn duration_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
