//! Runs one schedule.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Once};

use locktopus_core::{CohortSettings, Locktopus, SafetyMode, ValidityMargin};
use locktopus_model::Rng;
use locktopus_protocol::{BackendOptions, Deployment, GuardedWriter, RedisBackend};
use locktopus_quorum::QuorumBackend;

use crate::client::SimClient;
use crate::ears::Ears;
use crate::failures::failures;
use crate::flaw::Flaw;
use crate::judge::judge;
use crate::keeper::keep;
use crate::leftover::leftovers;
use crate::log::Log;
use crate::neighbour::Neighbour;
use crate::pace::{Pace, millis};
use crate::plan::{Fault, Plan, ProcessPlan};
use crate::process::Process;
use crate::task::Task;
use crate::violation::Violation;
use crate::world::{MS, Shared, World};
use locktopus_core::lock;

/// The result of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The broken rules, in order of time.
    pub violations: Vec<Violation>,
    /// How often each thing happened.
    pub counts: BTreeMap<&'static str, u64>,
    /// The events, line by line, if a trace was requested.
    pub trace: Vec<String>,
    /// How long it took in simulated time, in ms.
    pub took: u64,
}

/// How long after the last fault all processes may run, in µs. Time worked under locks comes on
/// top: waiters wait for as long as others work, and no work lasts for ever.
const PATIENCE: u64 = 60_000 * MS;
/// How long releases at the end may take, in µs.
const TIDYING: u64 = 1_500 * MS;

thread_local! {
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// The runtime catches panics of tasks, so a hook notes those of this thread.
fn note_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.with_borrow_mut(|panics| panics.push(panic.to_string()));
            usual(panic);
        }));
    });
    PANICS.with_borrow_mut(Vec::clear);
}

/// Runs a schedule, with a planted flaw if one is given.
#[must_use]
pub fn run(plan: &Plan, flaw: Option<Flaw>, trace: bool) -> Outcome {
    note_panics();
    let world: Shared = Arc::new(Mutex::new(World::new(plan, flaw, trace)));
    let (log, shared) = (Log::default(), Arc::new(plan.clone()));
    let mut seeds = Rng::new(plan.seed ^ 0x5eed);
    let mut processes: Vec<_> = plan
        .processes
        .iter()
        .enumerate()
        .map(|(number, process)| {
            let process = Process::new(number, seeds.bits(), process.drift);
            let main = main(
                number,
                Arc::clone(&shared),
                Arc::clone(&world),
                log.clone(),
                process.pace().clone(),
            );
            process.spawn(main);
            process
        })
        .collect();
    let calm = calm_from(plan);
    let mut now = 0;
    let mut faults = of_processes(plan);
    let mut violations = Vec::new();
    let mut worked_before = 0;
    loop {
        while faults.first().is_some_and(|(at, _)| *at <= now) {
            let (_, fault) = faults.remove(0);
            hit(&mut processes, fault, &world, now);
        }
        let next = faults.first().map_or(u64::MAX, |(at, _)| *at);
        let until = (now + 2 * plan.travel * MS).min(next);
        for process in &mut processes {
            process.run(&world, now, until);
        }
        lock(&world).run_until(until);
        now = until;
        let ended = log.with(|notes| notes.ended.clone());
        let done =
            |(number, process): (usize, &Process)| process.is_dead() || ended.contains(&number);
        if processes.iter().enumerate().all(done) {
            break;
        }
        // Waiters of a latch give up on their own, even later than that.
        let (latch_until, worked) = log.with(|notes| (notes.latch_until, notes.worked));
        let patient = latch_until.max(calm);
        if now <= patient {
            worked_before = worked;
        }
        if now > patient + PATIENCE + (worked - worked_before) {
            let doing = log.with(|notes| notes.doing.clone());
            for ((process, task), what) in doing {
                if !processes[process].is_dead() {
                    let what = format!("p{process} task {task}: {what}");
                    violations.push(Violation::new(now, "nobody waits for ever", what));
                }
            }
            if violations.is_empty() {
                violations.push(Violation::new(
                    now,
                    "nobody waits for ever",
                    "a process does not end".to_owned(),
                ));
            }
            break;
        }
    }
    for process in &mut processes {
        process.die(&world);
    }
    let mut world = lock(&world);
    world.run_until(now + TIDYING);
    // A task that waits for ever leaves something behind.
    let ended = violations.is_empty();
    violations.extend(log.with(|notes| judge(plan, notes, &world.witness)));
    violations.extend(log.with(|notes| failures(plan, notes, calm, &world.slow)));
    violations.extend(world.witness.take_found());
    if ended {
        violations.extend(leftovers(&mut world));
    }
    let panics = PANICS.with_borrow_mut(std::mem::take);
    violations.extend(
        panics
            .into_iter()
            .map(|panic| Violation::new(now, "nothing panics", panic)),
    );
    violations.sort_by_key(|violation| violation.at);
    let mut counts = world.counts.clone();
    log.with(|notes| counts.extend(notes.counts.clone()));
    let trace = world.trace.finish();
    Outcome {
        violations,
        counts,
        trace,
        took: now / MS,
    }
}

/// When the last fault is over, at the latest.
fn calm_from(plan: &Plan) -> u64 {
    let lasts = |fault: Fault| match fault {
        Fault::Split(_, time)
        | Fault::Return(_, time)
        | Fault::Restart(_, time, _)
        | Fault::OutOfMemory(_, time)
        | Fault::LacksReplicas(_, time)
        | Fault::Stall(_, time)
        | Fault::Suspend(_, time)
        | Fault::Sleep(_, time) => time,
        // Keys move one by one.
        Fault::MoveSlot(_, time) => time * 2 + 1_000,
        Fault::Lag(_, time) => time * 2,
        Fault::SetClock(_, by) => by.unsigned_abs(),
        _ => 0,
    };
    let ends = plan
        .faults
        .iter()
        .map(|(at, fault)| at + lasts(*fault) + 3_000);
    ends.max().unwrap_or(0) * MS
}

fn of_processes(plan: &Plan) -> Vec<(u64, Fault)> {
    let faults = plan.faults.iter().filter(|(_, fault)| {
        matches!(fault, Fault::Suspend(..) | Fault::Sleep(..) | Fault::Die(_))
    });
    let mut faults: Vec<_> = faults.map(|(at, fault)| (at * MS, *fault)).collect();
    faults.sort_by_key(|(at, _)| *at);
    faults
}

fn hit(processes: &mut [Process], fault: Fault, world: &Shared, now: u64) {
    lock(world).count(fault.name());
    match fault {
        Fault::Suspend(process, time) => processes[process].stop(now, now + time * MS, false),
        Fault::Sleep(process, time) => processes[process].stop(now, now + time * MS, true),
        Fault::Die(process) => processes[process].die(world),
        _ => {}
    }
}

/// The main task of a process.
async fn main(number: usize, plan: Arc<Plan>, world: Shared, log: Log, pace: Pace) {
    if plan.processes[number].neighbour {
        neighbours(number, plan, &world, &log, &pace).await;
        log.with(|notes| notes.ended.push(number));
        return;
    }
    let (locks, writer) = connect(number, &plan, &world, &pace).await;
    let keeper = tokio::spawn(keep(
        Arc::clone(&plan),
        locks.clone(),
        pace.clone(),
        calm_from(&plan),
    ));
    let mut tasks = Vec::new();
    for task in 0..plan.processes[number].tasks.len() {
        let task = Task {
            process: number,
            number: task,
            plan: Arc::clone(&plan),
            locks: locks.clone(),
            writer: writer.clone(),
            log: log.clone(),
            pace: pace.clone(),
        };
        tasks.push(tokio::spawn(task.run()));
    }
    for task in tasks {
        // The hook noted a panic already.
        let _ = task.await;
    }
    keeper.abort();
    let report = locks.shutdown(millis(2_000)).await;
    log.with(|notes| {
        *notes.counts.entry("left to their leases").or_default() += report.abandoned as u64
    });
    log.with(|notes| notes.ended.push(number));
}

/// The main task of a process that uses another library.
async fn neighbours(number: usize, plan: Arc<Plan>, world: &Shared, log: &Log, pace: &Pace) {
    let client = Arc::new(SimClient::new(world, pace, number, 0, deployment(&plan)));
    let ears = Ears::of(&client);
    let tasks = (0..plan.processes[number].tasks.len()).map(|task| {
        let neighbour = Neighbour {
            process: number,
            number: task,
            plan: Arc::clone(&plan),
            client: Arc::clone(&client),
            ears: Arc::clone(&ears),
            log: log.clone(),
            pace: pace.clone(),
        };
        tokio::spawn(neighbour.run())
    });
    for task in tasks.collect::<Vec<_>>() {
        // The hook noted a panic already.
        let _ = task.await;
    }
}

fn deployment(plan: &Plan) -> Deployment {
    match plan.replicas[..] {
        [0] => Deployment::Standalone,
        [_] => Deployment::Sentinel,
        _ => Deployment::Cluster,
    }
}

async fn connect(
    number: usize,
    plan: &Plan,
    world: &Shared,
    pace: &Pace,
) -> (Locktopus, Option<GuardedWriter>) {
    let flaw = lock(world).flaw;
    let options = || BackendOptions {
        call_timeout: millis(plan.call_timeout()),
        safety: match flaw {
            Some(Flaw::IgnoresSafety) => SafetyMode::Plain,
            _ => plan.safety,
        },
        ..BackendOptions::default()
    };
    let lease = millis(plan.lease);
    let Some(servers) = plan.quorum else {
        let client = Arc::new(SimClient::new(world, pace, number, 0, deployment(plan)));
        let writer = GuardedWriter::new(Arc::<SimClient>::clone(&client));
        let backend = RedisBackend::new(client, options()).await;
        let backend = backend.expect("these options are possible");
        let ProcessPlan { keep, turns, .. } = plan.processes[number];
        let cohort = CohortSettings {
            turns,
            ..CohortSettings::default()
        };
        let locks = Locktopus::builder(backend)
            .renewed_lease(lease)
            .lease_cache(millis(keep))
            .cohort(cohort)
            .build();
        return (locks.expect("these settings are possible"), Some(writer));
    };
    let mut quorum = QuorumBackend::builder()
        .max_lease(lease * 2)
        .probe_every(millis(500));
    for server in 0..servers {
        let client = SimClient::new(world, pace, number, server, Deployment::Standalone);
        let backend = RedisBackend::new(Arc::new(client), options()).await;
        let backend = backend.expect("these options are possible");
        let probe = backend.probe().expect("it is one server");
        let label = format!("n{server}");
        quorum = match flaw {
            Some(Flaw::VotesAtOnce) => quorum.node(label, Arc::new(backend)),
            _ => quorum.probed_node(label, Arc::new(backend), probe),
        };
    }
    let quorum = quorum.validity_margin(ValidityMargin::default()).build();
    let locks = Locktopus::builder(quorum.expect("these options are possible"))
        .renewed_lease(lease)
        .build();
    (locks.expect("these settings are possible"), None)
}
