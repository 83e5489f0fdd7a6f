//! One cell: deployments side by side, each with its workers and its share of the faults.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use locktopus_history::{Clock, Recorder};
use locktopus_servers::topology::{self, Deployment, ProviderKind, Spec, Vip};

use super::deployment_run::DeploymentRun;
use super::fault_context::FaultContext;
use super::worker_pool::WorkerPool;
use super::{Circumstances, RunError, faults, judge, leftovers};
use crate::failover::model::CellReport;
use crate::failover::plan::{Cell, Place, Subject, Verb};
use crate::failover::resource::{Flaw, Resource};
use crate::shared::random::Random;
use crate::shared::stall::StallWatch;

/// The runner's worker number in each history.
const RUNNER: u32 = 1;

/// The result of a cell.
#[derive(Debug)]
pub enum Outcome {
    /// It ran, but perhaps did not finish.
    Ran(Box<CellReport>),
    /// It needs something that is missing here.
    Skipped(String),
}

/// Runs a cell. `index` tells the cells of one run apart.
///
/// # Errors
///
/// [`RunError`] if servers or workers could not be started at all; later problems go into the
/// report.
pub async fn run(cell: &Cell, all: &Circumstances, index: usize) -> Result<Outcome, RunError> {
    if let Some(needs) = &cell.cannot {
        return Ok(Outcome::Skipped(needs.clone()));
    }
    let caps = topology::caps(all.provider).await?;
    if let Some(needs) = cell.scenario.needs(caps) {
        return Ok(Outcome::Skipped(needs.to_owned()));
    }
    let is_far = !cell.scenario.servers.round_trip.is_zero();
    if is_far && all.provider != ProviderKind::Plain {
        let needs = "--provider plain, which can put servers far away";
        return Ok(Outcome::Skipped(needs.to_owned()));
    }
    let begun = Instant::now();
    let machine = StallWatch::start(Clock::new(), |_, _| {});
    let directory = all.histories.join(format!("cell-{index}"));
    let count = cell.scenario.deployments;
    let mut places = Vec::new();
    for _ in 0..count {
        let place = topology::start(all.provider, &spec(cell, all)).await?;
        if cell.place == Place::Sentinel {
            hasten_sentinels(&place).await;
        }
        places.push(place);
    }
    wait_for_age(cell, begun).await;
    let share = |number: u32| {
        let faults = cell.scenario.faults;
        faults / count + u32::from(number < faults % count)
    };
    let driving = (0..count).zip(&places).map(|(number, place)| {
        let directory = directory.join(format!("deployment-{number}"));
        drive(cell, all, place, number, share(number), index, directory)
    });
    let result = futures_util::future::join_all(driving).await;
    let result: Vec<DeploymentRun> = result.into_iter().collect::<Result<_, _>>()?;
    for place in places {
        place.stop().await?;
    }
    let machine = machine.finish();
    let mut report = tokio::task::block_in_place(|| judge::judge(cell, &result))?;
    report.took_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
    report.provider = all.provider.to_string();
    report.deployments = count;
    report.machine = Some(machine);
    if cell.scenario.fault != Verb::Nothing {
        report.planned_faults = u64::from(cell.scenario.faults);
    }
    if all.keep_histories {
        let files: Vec<_> = result
            .iter()
            .flat_map(|one| one.histories.clone())
            .collect();
        let kept = judge::kept(cell, all.seed, &report);
        tokio::task::block_in_place(|| kept.keep(&directory, &files))?;
    } else {
        let _ = std::fs::remove_dir_all(&directory);
        // Fails if the directories are not empty, which means that they are still needed.
        for parent in directory.ancestors().skip(1).take(2) {
            let _ = std::fs::remove_dir(parent);
        }
    }
    Ok(Outcome::Ran(Box::new(report)))
}

fn spec(cell: &Cell, all: &Circumstances) -> Spec {
    let scenario = &cell.scenario;
    let mut knobs = scenario
        .servers
        .knobs(&cell.mode, cell.place, scenario.does(Verb::StepClock));
    if scenario.cut_replication && cell.place == Place::Cluster {
        // A replica that was cut off for ten times the node timeout must not take over. With the
        // short timeouts used here a busy machine turns any cut into that, and the shard stays
        // without a primary for good. With the usual timeouts the limit is minutes.
        let always = ["--cluster-replica-validity-factor", "0"].map(ToOwned::to_owned);
        knobs.extra_args.splice(0..0, always);
    }
    let mut spec = Spec::new(cell.place.kind()).with_knobs(knobs);
    if !scenario.servers.round_trip.is_zero() {
        spec = spec.with_round_trip(scenario.servers.round_trip);
    }
    match (&all.image, all.provider) {
        (Some(image), ProviderKind::Pod) => spec.with_image(image.clone()),
        _ => spec,
    }
}

/// Many failovers follow each other quickly, but Sentinel's fixed periods suit hours. Servers
/// without this command keep them.
async fn hasten_sentinels(place: &Deployment) {
    for sentinel in place.sentinels() {
        let periods = [
            "SENTINEL",
            "DEBUG",
            "INFO-PERIOD",
            "500",
            "PUBLISH-PERIOD",
            "500",
            "ASK-PERIOD",
            "300",
            "MIN-LINK-RECONNECT-PERIOD",
            "300",
            "TILT-PERIOD",
            "2000",
        ];
        let _ = sentinel.command(&periods).await;
    }
}

/// The nodes of a quorum vote only once they are older than the longest lease.
async fn wait_for_age(cell: &Cell, begun: Instant) {
    if cell.place == Place::Quorum
        && let Some(age) = cell.mode.max_lease
    {
        let until = begun + age + Duration::from_secs(2);
        tokio::time::sleep_until(until.into()).await;
    }
}

async fn drive(
    cell: &Cell,
    all: &Circumstances,
    place: &Deployment,
    number: u32,
    share: u32,
    index: usize,
    directory: PathBuf,
) -> Result<DeploymentRun, RunError> {
    std::fs::create_dir_all(&directory).map_err(RunError::io("make a directory for histories"))?;
    let prefix = format!("{}:{index}:{number}", all.prefix);
    let resource = Resource::open(flaw(cell.subject))
        .await
        .map_err(RunError::io("open a socket"))?;
    let vip = match cell.place {
        Place::Vip => Some(Vip::start(place.nodes()[0].addr()).await?),
        _ => None,
    };
    let urls = match &vip {
        Some(vip) => vec![format!("redis://{}", vip.addr())],
        None => place.urls(),
    };
    let pool = WorkerPool::start(
        cell,
        number,
        &urls,
        &prefix,
        resource.addr(),
        all,
        &directory,
    )
    .await?;
    let own = directory.join("runner.jsonl");
    let recorder = Recorder::create(&own).map_err(|error| RunError::History(error.to_string()))?;
    // A stall of this process must not excuse workers. If they wait for the resource, which runs
    // here, they record that themselves.
    let mut result = DeploymentRun {
        prefix: prefix.clone(),
        server: place.server_version().to_owned(),
        ..DeploymentRun::default()
    };
    let seed = all.seed.wrapping_add(u64::from(number) << 40) ^ index as u64;
    let mut context = FaultContext {
        cell,
        place,
        vip: vip.as_ref(),
        resource: &resource,
        pool,
        log: recorder.worker(RUNNER + number),
        prefix: prefix.clone(),
        random: Random::new(seed),
        happened: BTreeMap::new(),
        done: 0,
    };
    if let Err(error) = do_faults(&mut context, share).await {
        let (done, share) = (context.done, share);
        result
            .trouble
            .push(format!("stopped after {done} of {share} faults: {error}"));
        mend(place).await;
    }
    result.happened = context.happened;
    let ended = context.pool.stop().await;
    result.trouble.extend(ended.trouble);
    result.finished = ended.finished;
    result.histories = ended.histories;
    recorder
        .close()
        .map_err(|error| RunError::History(error.to_string()))?;
    result.histories.push(own);
    result.lost = resource.lost_updates();
    match leftovers::look(cell, place, &prefix).await {
        Ok(left) => result.leftovers = Some(left),
        Err(error) => result
            .trouble
            .push(format!("no look at what is left: {error}")),
    }
    Ok(result)
}

/// The flaw of the resource, for subjects whose lock itself is sound.
const fn flaw(subject: Subject) -> Flaw {
    match subject {
        Subject::BrokenGate => Flaw::AdmitsAnybody,
        Subject::BrokenDoor => Flaw::RefusesSome,
        Subject::BrokenStore => Flaw::ForgetsSome,
        _ => Flaw::None,
    }
}

async fn do_faults(context: &mut FaultContext<'_>, share: u32) -> Result<(), RunError> {
    let targets = context.targets();
    context.grant(&targets).await?;
    for _ in 0..share {
        faults::once(context).await?;
    }
    if context.cell.scenario.fault == Verb::Nothing {
        tokio::time::sleep(context.cell.scenario.lasts).await;
    }
    // Leftovers are judged on servers that take writes, and a holder that lost its lock in the last
    // fault needs time to notice.
    context.writable().await?;
    context.pause().await;
    Ok(())
}

/// Leaves no server frozen or cut off after an error. For a server in good order this does nothing.
async fn mend(place: &Deployment) {
    for node in place.nodes() {
        let _ = node.heal().await;
        let _ = node.thaw().await;
        if !node.is_running().await {
            let _ = node.start().await;
        }
    }
}
