//! `run`: measures.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use super::servers::Servers;
use super::text::style;
use super::{CommandError, peers, report};
use crate::cmd::exit::Exit;
use crate::measure::completeness;
use crate::measure::model::{Environment, Report, Topology};
use crate::measure::plan::{Client, Filter, Kind, Scenario, ScenarioFile, Strategy, Task};
use crate::measure::run::{PinnedCores, ProviderChoice, Runner};
use crate::shared::provenance::detect;

const QUICK: &str = include_str!("../../scenarios/quick.toml");
const FULL: &str = include_str!("../../scenarios/full.toml");
const SMOKE: &str = include_str!("../../scenarios/smoke.toml");

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The quick matrix, the default: under five minutes.
    #[arg(long, group = "matrix")]
    quick: bool,
    /// The full matrix: about an hour.
    #[arg(long, group = "matrix")]
    full: bool,
    /// The smallest run that touches everything; its figures mean nothing.
    #[arg(long, group = "matrix")]
    smoke: bool,
    /// A scenario file of your own.
    #[arg(long, value_name = "FILE", group = "matrix")]
    file: Option<PathBuf>,
    /// How to get servers.
    #[arg(long, value_enum, default_value_t)]
    provider: ProviderChoice,
    /// Image for containers, such as `valkey/valkey:8.1`.
    #[arg(long, value_name = "NAME:TAG")]
    image: Option<String>,
    /// A Locktopus URL of servers that run already. Touches only locks named `locktopus-bench:...`.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Only cells of this group of the scenario file; may be repeated.
    #[arg(long, value_delimiter = ',')]
    group: Vec<String>,
    /// Only this scenario; may be repeated.
    #[arg(long, value_enum, value_delimiter = ',')]
    scenario: Vec<Scenario>,
    /// Only this strategy; may be repeated.
    #[arg(long, value_enum, value_delimiter = ',')]
    strategy: Vec<Strategy>,
    /// Only this client; may be repeated.
    #[arg(long, value_enum, value_delimiter = ',')]
    client: Vec<Client>,
    /// Only this topology: standalone, sentinel, cluster, quorum; may be repeated.
    #[arg(long, value_parser = topology, value_delimiter = ',')]
    topology: Vec<Topology>,
    /// Replace the kinds of lock.
    #[arg(long, value_enum, value_delimiter = ',')]
    kind: Vec<Kind>,
    /// Replace the numbers of workers.
    #[arg(long, value_delimiter = ',')]
    workers: Vec<u32>,
    /// Replace the number of processes for the hot lock.
    #[arg(long)]
    processes: Option<u32>,
    /// Replace the length of each measurement, such as `2s`.
    #[arg(long, value_parser = humantime::parse_duration)]
    duration: Option<Duration>,
    /// Replace the number of rounds.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// Pin servers to one core and workers to another, and keep both awake. Use it for figures that
    /// you want to compare.
    #[arg(long)]
    pin: bool,
    /// Print what would be measured, and for how long, then exit.
    #[arg(long)]
    list: bool,
    /// Do not start unless the machine is idle: a load average of at most 1.0. Use it for figures
    /// that go into a page.
    #[arg(long)]
    idle: bool,
    /// Where to write; `bench-results/<time>` by default.
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
}

fn topology(text: &str) -> Result<Topology, String> {
    match text {
        "standalone" => Ok(Topology::Standalone),
        "sentinel" => Ok(Topology::Sentinel),
        "cluster" => Ok(Topology::Cluster),
        "quorum" => Ok(Topology::Quorum),
        _ => Err("must be standalone, sentinel, cluster or quorum".to_owned()),
    }
}

/// Runs the subcommand.
///
/// # Errors
///
/// [`CommandError`].
pub async fn run(args: &RunArgs) -> Result<Exit, CommandError> {
    let (file, mut name) = args.scenario_file()?;
    let filter = args.filter();
    if filter != Filter::default() || args.rounds.is_some() {
        // `targets` makes pages from whole runs only.
        name.push_str("-part");
    }
    let mut tasks = file.tasks(&filter)?;
    let rounds = args.rounds.unwrap_or(file.rounds);
    for task in &mut tasks {
        task.rounds = task.rounds.filter(|most| *most < rounds);
    }
    if args.list {
        super::print(&list(&tasks, rounds))?;
        return Ok(Exit::Ok);
    }
    let environment = detect::environment(PinnedCores::off().pinning());
    if let Some(load) = environment.busy().filter(|_| args.idle) {
        return Err(CommandError::Busy { load });
    }
    let cores = if args.pin {
        PinnedCores::on().map_err(CommandError::Usage)?
    } else {
        PinnedCores::off()
    };
    let mut report = Report::new(
        detect::run(&name, 0, rounds),
        detect::harness(),
        Environment {
            pinning: cores.pinning(),
            ..environment
        },
    );
    if args.smoke {
        report.note("Smoke run: it shows that everything works; its figures mean nothing.");
    }
    if cfg!(debug_assertions) {
        report.note("Debug build: its figures mean nothing. Build with --release.");
    }
    let redisson = peers::prepare(&mut tasks, &mut report).await;
    eprintln!(
        "{} cells, {rounds} rounds; {}",
        tasks.len(),
        report.environment.pinning.describe()
    );

    let bar = progress(&tasks, rounds);
    let runner = Runner {
        cores: &cores,
        prefix: format!("locktopus-bench:{}", report.run.id),
        pings: 2_000,
        redisson,
    };
    let measured = tokio::select! {
        measured = measure(args, &tasks, rounds, &runner, &mut report, &bar) => measured,
        _ = tokio::signal::ctrl_c() => Err(CommandError::Interrupted),
    };
    bar.finish_and_clear();
    let missing = measured?;
    finish(args, &report, missing)
}

/// The places in the order of measurement, and whether a slow line stands before the servers.
const PLACES: [(Topology, bool); 7] = [
    (Topology::InProcess, false),
    (Topology::Standalone, false),
    (Topology::Standalone, true),
    (Topology::Sentinel, false),
    (Topology::Cluster, false),
    (Topology::Quorum, false),
    (Topology::Quorum, true),
];

/// Measures place by place, so that starting the servers of one topology disturbs no other. Returns
/// what was missing.
async fn measure(
    args: &RunArgs,
    tasks: &[Task],
    rounds: u32,
    runner: &Runner<'_>,
    report: &mut Report,
    bar: &ProgressBar,
) -> Result<Vec<String>, CommandError> {
    let mut provider = args.provider;
    let mut missing = Vec::new();
    for (topology, far) in PLACES {
        let here: Vec<Task> = tasks
            .iter()
            .filter(|task| task.topology == topology && task.round_trip.is_some() == far)
            .cloned()
            .collect();
        if here.is_empty() {
            continue;
        }
        bar.set_message(format!("starting {}", topology.name()));
        let skipped = report.skipped.len();
        let Some(place) = args
            .servers()
            .open((topology, far), &mut provider, report)
            .await?
        else {
            if args.provider == ProviderChoice::Auto {
                // The user did not permit skips, so a skip here means that something is missing.
                let skips = report.skipped[skipped..].iter();
                missing.extend(skips.map(|skip| format!("{}: needs {}", skip.what, skip.needs)));
            }
            bar.inc(steps(&here, rounds));
            continue;
        };
        runner
            .cores
            .pin_servers(&place.pids().await)
            .map_err(CommandError::Usage)?;
        for index in 0..rounds {
            // Every other round runs backwards, so that no cell always meets a tired machine.
            let due = here.iter().filter(|task| index < task.rounds_of(rounds));
            let order: Vec<&Task> = if index % 2 == 0 {
                due.collect()
            } else {
                due.rev().collect()
            };
            for (position, task) in order.into_iter().enumerate() {
                bar.set_message(task.describe());
                let position = u32::try_from(position).unwrap_or(u32::MAX);
                place.put_away(task.round_trip.unwrap_or_default());
                runner.once(report, &place, task, index, position).await?;
                bar.inc(1);
            }
        }
        place.stop().await?;
    }
    Ok(missing)
}

fn finish(args: &RunArgs, report: &Report, mut missing: Vec<String>) -> Result<Exit, CommandError> {
    super::print(&crate::measure::report::terminal::render(report, style()))?;
    let stamp = report.run.id.rsplit('-').next().unwrap_or(&report.run.id);
    let directory = args
        .out
        .clone()
        .unwrap_or_else(|| Path::new("bench-results").join(stamp));
    report::write(report, &directory)?;
    eprintln!(
        "\nWritten to {}; look at {}",
        directory.display(),
        directory.join("report.html").display()
    );
    let overlaps: u64 = report
        .cells
        .iter()
        .flat_map(|cell| &cell.rounds)
        .filter_map(|round| round.overlap_check.map(|check| check.overlaps))
        .sum();
    if overlaps > 0 {
        eprintln!("FAILED: {overlaps} times a lock had two holders; see the overlaps column");
        return Ok(Exit::Overlap);
    }
    missing.extend(completeness::missing(report));
    for problem in &missing {
        eprintln!("FAILED: {problem}");
    }
    Ok(if missing.is_empty() {
        Exit::Ok
    } else {
        Exit::Measurement
    })
}

/// A line for each cell, and the time of all measurements; starting servers and workers comes on
/// top.
fn list(tasks: &[Task], rounds: u32) -> String {
    let mut lines = String::new();
    let mut all = Duration::ZERO;
    for task in tasks {
        let (times, each) = (task.rounds_of(rounds), task.warm_up + task.duration);
        all += each * times;
        let group = task.group.as_deref().unwrap_or("-");
        let what = task.describe();
        lines.push_str(&format!("{times} x {each:?}  {group}: {what}\n"));
    }
    let (cells, seconds) = (tasks.len(), all.as_secs());
    format!("{lines}{cells} cells, {rounds} rounds: {seconds} s and the starts\n")
}

/// The rounds of all cells.
fn steps(tasks: &[Task], rounds: u32) -> u64 {
    let rounds = tasks.iter().map(|task| u64::from(task.rounds_of(rounds)));
    rounds.sum()
}

fn progress(tasks: &[Task], rounds: u32) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:20} {pos}/{len} {elapsed} {wide_msg}");
    // Drawn on standard error, and only on a terminal.
    ProgressBar::new(steps(tasks, rounds))
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

impl RunArgs {
    fn scenario_file(&self) -> Result<(ScenarioFile, String), CommandError> {
        if let Some(path) = &self.file {
            let name = path.file_stem().map_or_else(
                || "scenario".into(),
                |stem| stem.to_string_lossy().into_owned(),
            );
            return Ok((ScenarioFile::load(path)?, name));
        }
        let (text, name) = match (self.full, self.smoke) {
            (true, _) => (FULL, "full"),
            (_, true) => (SMOKE, "smoke"),
            _ => (QUICK, "quick"),
        };
        Ok((ScenarioFile::parse(text, name)?, name.to_owned()))
    }

    fn servers(&self) -> Servers<'_> {
        Servers {
            provider: self.provider,
            image: self.image.as_deref(),
            url: self.url.as_deref(),
        }
    }

    fn filter(&self) -> Filter {
        Filter {
            groups: self.group.clone(),
            scenarios: self.scenario.clone(),
            strategies: self.strategy.clone(),
            clients: self.client.clone(),
            topologies: self.topology.clone(),
            kinds: self.kind.clone(),
            workers: self.workers.clone(),
            processes: self.processes,
            duration: self.duration,
        }
    }
}
