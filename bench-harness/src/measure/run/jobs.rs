//! Turns a task into the jobs of its processes and the subject of its cell.

use std::time::Duration;

use super::place::Place;
use crate::measure::model::{Provider, Subject, Topology};
use crate::measure::plan::{Scenario, Task};
use crate::measure::record::Exclusion;
use crate::measure::worker::Job;

/// Values that all processes of all tasks share.
#[derive(Clone, Debug)]
pub(super) struct Common {
    /// Unique start of every lock name of this task in this round.
    pub(super) prefix: String,
    /// Round trips of PING that the first process times.
    pub(super) pings: u32,
    /// Core of the workers.
    pub(super) core: Option<u32>,
}

/// One job for each process.
pub(super) fn jobs(place: &Place, task: &Task, common: &Common) -> Vec<Job> {
    let mut urls = place.urls(task.client, task.nodes).into_iter();
    let mut url = urls.next().unwrap_or_default();
    if let Some(safety) = &task.safety {
        url = format!("{url}&safety={safety}");
    }
    let more_urls: Vec<String> = urls.collect();
    let mut first_worker = 0;
    let jobs = (0..task.processes).map(|process| {
        let remote = task.scenario == Scenario::RemoteWaiter && process + 1 == task.processes;
        let workers = match task.scenario {
            Scenario::RemoteWaiter if remote => 1,
            Scenario::RemoteWaiter => task.workers.saturating_sub(1),
            _ => share(task.workers, process, task.processes),
        };
        let job = Job {
            scenario: task.scenario,
            strategy: task.strategy,
            client: task.client,
            url: url.clone(),
            more_urls: more_urls.clone(),
            kind: task.kind,
            prefix: common.prefix.clone(),
            first_worker,
            workers,
            threads: task.threads,
            turns: task.turns,
            lease_cache_ns: duration_ns(task.lease_cache),
            reluctant: !more_urls.is_empty() || task.safety.is_some(),
            remote,
            locks: share(task.locks, process, task.processes),
            hold_ns: duration_ns(task.hold),
            duration_ns: duration_ns(task.duration),
            arrivals_per_second: task
                .arrivals_per_second
                .map(|rate| (rate * u64::from(workers) / u64::from(task.workers)).max(1)),
            lease_ms: u64::try_from(task.lease.as_millis()).unwrap_or(u64::MAX),
            pings: if process == 0 { common.pings } else { 0 },
            core: common.core,
            warm_up_ns: duration_ns(task.warm_up),
        };
        first_worker += workers;
        job
    });
    jobs.collect()
}

fn share(whole: u32, process: u32, processes: u32) -> u32 {
    let processes = processes.max(1);
    whole / processes + u32::from(process < whole % processes)
}

/// The rule for holders of a task's lock at the same time; `None` if no lock is shared.
pub(super) fn exclusion(scenario: Scenario) -> Option<Exclusion> {
    match scenario {
        Scenario::ReadersWriters => Some(Exclusion::OddWorkersWrite),
        scenario if scenario.is_loop() => Some(Exclusion::Permits(1)),
        _ => None,
    }
}

/// The subject of its cell in the report.
pub(super) fn subject(place: &Place, task: &Task) -> Subject {
    Subject {
        nodes: match place.topology {
            Topology::Quorum => task
                .nodes
                .map_or(place.nodes, |nodes| nodes.min(place.nodes)),
            _ => place.nodes,
        },
        provider: place.provider,
        server: place.server.clone(),
        // The engine's port map is a process between client and server, and so is a slow line.
        through_proxy: place.provider == Provider::Container || task.round_trip.is_some(),
        ..task.subject()
    }
}

pub(super) fn duration_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::plan::{Filter, ScenarioFile};

    fn jobs_of(cell: &str) -> Vec<Job> {
        let text = format!("rounds = 1\n[[cell]]\n{cell}");
        let file = ScenarioFile::parse(&text, "x.toml").unwrap();
        let task = file.tasks(&Filter::default()).unwrap().remove(0);
        let common = Common {
            prefix: "p".to_owned(),
            pings: 10,
            core: None,
        };
        jobs(&Place::memory(), &task, &common)
    }

    #[test]
    fn workers_are_spread_evenly_and_only_the_first_process_pings() {
        let jobs = jobs_of("scenario = \"hot-lock\"\nworkers = [8]\nprocesses = 3");
        let found: Vec<_> = jobs
            .iter()
            .map(|job| (job.first_worker, job.workers, job.pings))
            .collect();
        assert_eq!(found, [(0, 3, 10), (3, 3, 0), (6, 2, 0)]);
    }

    #[test]
    fn a_remote_waiter_is_alone_in_its_process() {
        let jobs = jobs_of("scenario = \"remote-waiter\"\nworkers = [9]\nprocesses = 2");
        let found: Vec<_> = jobs
            .iter()
            .map(|job| (job.first_worker, job.workers, job.remote))
            .collect();
        assert_eq!(found, [(0, 8, false), (8, 1, true)]);
    }

    #[test]
    fn a_lease_is_kept_only_where_the_file_says_so() {
        let cached = jobs_of("scenario = \"uncontended\"\nlease_cache = \"5ms\"");
        assert_eq!(cached[0].lease_cache_ns, 5_000_000);
        assert_eq!(jobs_of("scenario = \"uncontended\"")[0].lease_cache_ns, 0);
        let guarded = jobs_of("scenario = \"uncontended\"\nsafety = \"replicated&replicas=all\"");
        assert!(
            guarded[0].url.ends_with("&safety=replicated&replicas=all") && guarded[0].reluctant
        );
    }
}
