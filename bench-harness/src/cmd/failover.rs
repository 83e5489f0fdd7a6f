//! `failover`: faults on real servers under lock load, and their effect on the locks.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use locktopus_servers::topology::{self, ProviderKind, ServerImage, TopologyError};

use super::CommandError;
use super::files::{create, save};
use super::text::style;
use crate::cmd::exit::Exit;
use crate::failover::completeness;
use crate::failover::model::{self, CellReport, FailoverReport};
use crate::failover::plan::{Cell, Choice, Place, PlanFile, Subject};
use crate::failover::report::terminal;
use crate::failover::run::{self, Circumstances, Outcome};
use crate::measure::model::Pinning;
use crate::measure::plan::Client;
use crate::shared::provenance::detect;

const QUICK: &str = include_str!("../../failover/quick.toml");
const FULL: &str = include_str!("../../failover/full.toml");
const SMOKE: &str = include_str!("../../failover/smoke.toml");
const NEMESIS: &str = include_str!("../../failover/nemesis.toml");

/// Arguments of `failover`.
#[derive(Debug, Args)]
pub struct FailoverArgs {
    /// The quick matrix, the default: about thirteen minutes.
    #[arg(long, group = "plan")]
    quick: bool,
    /// Every fault on every topology; see --failovers.
    #[arg(long, group = "plan")]
    full: bool,
    /// The smallest run that touches everything; it proves nothing.
    #[arg(long, group = "plan")]
    smoke: bool,
    /// Overlapping faults drawn at random: at least a thousand for each mode that promises
    /// exclusion and each client.
    #[arg(long, group = "plan")]
    nemesis: bool,
    /// A plan of your own; see bench-harness/failover/quick.toml.
    #[arg(long, value_name = "FILE", group = "plan")]
    file: Option<PathBuf>,
    /// Replace the number of failovers, in each cell that fails over.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    failovers: Option<u32>,
    /// Replace the number of deployments side by side, in each cell that fails over.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    deployments: Option<u32>,
    /// Only this scenario; may be repeated.
    #[arg(long, value_delimiter = ',')]
    scenario: Vec<String>,
    /// Only this topology; may be repeated.
    #[arg(long, value_delimiter = ',', value_parser = str::parse::<Place>)]
    topology: Vec<Place>,
    /// Only this safety mode; may be repeated.
    #[arg(long, value_delimiter = ',')]
    mode: Vec<String>,
    /// Only this client; may be repeated.
    #[arg(long, value_enum, value_delimiter = ',')]
    client: Vec<Client>,
    /// Only this lock; may be repeated.
    #[arg(long, value_delimiter = ',', value_parser = str::parse::<Subject>)]
    subject: Vec<Subject>,
    /// Server processes (`plain`) or containers (`pod`).
    #[arg(long, default_value = "plain", value_parser = parse::<ProviderKind>)]
    provider: ProviderKind,
    /// Image for containers, such as `valkey/valkey:8.1`.
    #[arg(long, value_parser = parse::<ServerImage>)]
    image: Option<ServerImage>,
    /// Replace the seed of the plan.
    #[arg(long)]
    seed: Option<u64>,
    /// Print the cells, then exit.
    #[arg(long)]
    list: bool,
    /// Keep the workers' histories, compressed, in `histories/<run>` beside the report;
    /// `failover-judge` can judge them again.
    #[arg(long)]
    keep_histories: bool,
    /// Where to write; `failover-results/<time>` by default.
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
}

fn parse<T: std::str::FromStr<Err = TopologyError>>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|error: TopologyError| error.to_string())
}

/// Runs the subcommand.
///
/// # Errors
///
/// [`CommandError`].
pub async fn run(args: &FailoverArgs) -> Result<Exit, CommandError> {
    let (plan, name) = args.plan()?;
    let mut cells = plan.cells(&args.choice())?;
    if args.list {
        super::print(&list(&cells, args).await)?;
        return Ok(Exit::Ok);
    }
    let redisson = with_redisson(&mut cells).await;
    let seed = args.seed.unwrap_or(plan.seed);
    let mut report = FailoverReport::new(
        detect::run(&format!("failover-{name}"), seed, 1),
        detect::harness(),
        detect::environment(Pinning::default()),
    );
    notes(args, &mut report);
    report.notes.extend(redisson);
    let directory = args.directory(&report);
    create(&directory)?;
    forget(&directory)?;
    let all = Circumstances {
        provider: args.provider,
        image: args.image.clone(),
        prefix: format!("locktopus-failover:{}", report.run.id),
        seed,
        histories: directory.join("histories").join(&report.run.id),
        keep_histories: args.keep_histories,
    };
    tokio::select! {
        ran = every(&cells, &all, &directory, &mut report) => ran?,
        _ = tokio::signal::ctrl_c() => return Err(CommandError::Interrupted),
    }
    finish(&report, &directory)
}

/// The file that only the end of a run writes. That of an earlier run must go, or it would stand
/// beside the `report.json` of a run that was interrupted.
const AT_THE_END: &str = "report.txt";

fn forget(directory: &Path) -> Result<(), CommandError> {
    let path = directory.join(AT_THE_END);
    match std::fs::remove_file(&path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(CommandError::Write { path, source })
        }
        _ => Ok(()),
    }
}

/// Builds Redisson's worker before any worker needs it, if a cell wants it. Returns its version. If
/// that fails, the cells are skipped, which is a failure unless the plan calls them optional.
async fn with_redisson(cells: &mut [Cell]) -> Option<String> {
    let mut wanted: Vec<&mut Cell> = cells
        .iter_mut()
        .filter(|cell| cell.subject == Subject::Redisson && cell.cannot.is_none())
        .collect();
    if wanted.is_empty() {
        return None;
    }
    match super::peers::redisson().await {
        Ok((version, _)) => Some(format!(
            "Redisson is version {version}, with its watchdog where a lock is renewed, and its wait for replicas."
        )),
        Err(needs) => {
            for cell in &mut wanted {
                cell.cannot = Some(needs.clone());
            }
            None
        }
    }
}

/// Runs cell after cell, and writes the report after each, because a long run may be interrupted.
async fn every(
    cells: &[Cell],
    all: &Circumstances,
    directory: &Path,
    report: &mut FailoverReport,
) -> Result<(), CommandError> {
    let begun = Instant::now();
    for (index, cell) in cells.iter().enumerate() {
        let what = cell.describe();
        eprintln!(
            "[{:>4} s] {} of {}: {what}",
            begun.elapsed().as_secs(),
            index + 1,
            cells.len()
        );
        match run::run(cell, all, index).await {
            Ok(Outcome::Ran(cell)) => {
                eprintln!("          {}", brief(&cell));
                report.cells.push(*cell);
            }
            Ok(Outcome::Skipped(needs)) if cell.scenario.optional => {
                eprintln!("          skipped: needs {needs}");
                report.skip(what, needs);
            }
            Ok(Outcome::Skipped(needs)) => {
                eprintln!("          FAILED: needs {needs}");
                report.fail(what, format!("needs {needs}"));
            }
            // The other cells are still worth running.
            Err(error) => {
                eprintln!("          FAILED: {error}");
                report.fail(what, error.to_string());
            }
        }
        save(&directory.join("report.json"), &model::to_json(report))?;
    }
    Ok(())
}

/// The result in one line.
fn brief(cell: &CellReport) -> String {
    let figures = &cell.figures;
    let mut text = format!(
        "{} faults, {} with double grants; {} grants, stale writes {} caught {} missed",
        figures.faults,
        figures.faults_with_double_grants,
        figures.granted,
        figures.writes.caught,
        figures.writes.missed,
    );
    if cell.subject.is_broken() {
        let caught = cell.caught.join(", ");
        text = format!("{text}; broken on purpose, caught by: {caught}");
    }
    let machine = crate::failover::report::said::machine(cell);
    let problems = cell.broken_promises.iter().chain(&cell.trouble);
    for problem in problems.chain(&machine) {
        text = format!("{text}\n          ! {problem}");
    }
    text
}

/// What this machine would run, and what it would skip.
async fn list(cells: &[Cell], args: &FailoverArgs) -> String {
    // Without a container engine no container runs, so what the provider supports does not matter.
    let caps = topology::caps(args.provider).await.ok();
    let line = |cell: &Cell| {
        let (faults, fault) = (cell.scenario.faults, cell.scenario.fault);
        let missing = caps.and_then(|caps| cell.scenario.needs(caps));
        let needs = cell.cannot.as_deref().or(missing);
        let needs = needs.map(|needs| format!(", needs {needs}"));
        let needs = needs.unwrap_or_default();
        format!("{}: {faults} x {fault}{needs}\n", cell.describe())
    };
    let lines: String = cells.iter().map(line).collect();
    format!("{lines}{} cells\n", cells.len())
}

fn notes(args: &FailoverArgs, report: &mut FailoverReport) {
    let mut note = |text: &str| report.notes.push(text.to_owned());
    if cfg!(debug_assertions) {
        note("Debug build: times mean nothing. Build with --release.");
    }
    if args.smoke {
        note("Smoke run: it shows that everything works, and proves nothing.");
    }
    note(
        "Servers notice failures sooner than with the usual settings, so that many failovers fit into little \
         time: compare outages with each other, not with those of your servers.",
    );
    note(
        "Faults hit at the worst moment that we found: rates are upper limits, not what a deployment in production \
         sees.",
    );
}

fn finish(report: &FailoverReport, directory: &Path) -> Result<Exit, CommandError> {
    let text = terminal::render(report, style());
    super::print(&text)?;
    save(&directory.join(AT_THE_END), &text)?;
    eprintln!("\nWritten to {}", directory.display());
    for problem in completeness::missing(report) {
        eprintln!("FAILED: {problem}");
    }
    if !report.keeps_promises() {
        eprintln!("FAILED: a promise was not kept; see above");
        return Ok(Exit::Overlap);
    }
    Ok(if completeness::missing(report).is_empty() {
        Exit::Ok
    } else {
        Exit::Measurement
    })
}

impl FailoverArgs {
    fn plan(&self) -> Result<(PlanFile, String), CommandError> {
        if let Some(path) = &self.file {
            let name = path
                .file_stem()
                .map_or_else(|| "plan".into(), |stem| stem.to_string_lossy().into_owned());
            return Ok((PlanFile::load(path)?, name));
        }
        let (text, name) = if self.full {
            (FULL, "full")
        } else if self.nemesis {
            (NEMESIS, "nemesis")
        } else if self.smoke {
            (SMOKE, "smoke")
        } else {
            (QUICK, "quick")
        };
        Ok((PlanFile::parse(text, name)?, name.to_owned()))
    }

    fn choice(&self) -> Choice {
        Choice {
            scenarios: self.scenario.clone(),
            topologies: self.topology.clone(),
            modes: self.mode.clone(),
            clients: self.client.clone(),
            subjects: self.subject.clone(),
            provider: Some(self.provider),
            failovers: self.failovers,
            deployments: self.deployments,
        }
    }

    fn directory(&self, report: &FailoverReport) -> PathBuf {
        let id = &report.run.id;
        let stamp = id.rsplit('-').next().unwrap_or(id);
        self.out
            .clone()
            .unwrap_or_else(|| Path::new("failover-results").join(stamp))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_an_earlier_run_stands_beside_one_that_is_broken_off() {
        let directory =
            std::env::temp_dir().join(format!("locktopus-failover-{}", std::process::id()));
        std::fs::create_dir_all(directory.join("histories")).unwrap();
        std::fs::write(directory.join(AT_THE_END), "old").unwrap();
        forget(&directory).unwrap();
        assert!(!directory.join(AT_THE_END).exists() && directory.join("histories").exists());
        forget(&directory).unwrap();
        std::fs::remove_dir_all(directory).unwrap();
    }
}
