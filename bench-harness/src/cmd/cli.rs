//! The command line of `locktopus-bench`.

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::cmd::exit::{self, Exit};
use crate::cmd::{
    CommandError, failover, failover_judge, failover_report, pages, report, run, soak, targets,
    topology,
};
use crate::measure::{spin, worker};

/// Measures distributed locks and reports the results.
#[derive(Debug, Parser)]
#[command(name = "locktopus-bench", version, after_help = exit::HELP)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure, and write a report.
    Run(Box<run::RunArgs>),
    /// Inject faults into servers under lock load, and report what happened to the locks.
    Failover(Box<failover::FailoverArgs>),
    /// Judge again the histories that `failover --keep-histories` kept.
    FailoverJudge(failover_judge::FailoverJudgeArgs),
    /// Render a stored run of `failover`.
    FailoverReport(failover_report::FailoverReportArgs),
    /// Hold many locks and keep acquiring more for a long time, then check what is left over.
    Soak(soak::SoakArgs),
    /// Start and stop servers.
    Topology(topology::TopologyArgs),
    /// Act as a worker process of `run`.
    #[command(hide = true)]
    Worker,
    /// Act as a worker process of `failover`.
    #[command(hide = true)]
    FailoverWorker,
    /// Keep a core awake.
    #[command(hide = true)]
    Spin {
        /// Which core.
        core: u32,
    },
    /// Render a stored run as table and HTML.
    Report(report::ReportArgs),
    /// Judge a stored run against the targets, and write the performance page.
    Targets(targets::TargetsArgs),
    /// Print completions for a shell.
    Completions(pages::CompletionsArgs),
    /// Print the manual page.
    Man,
}

impl Cli {
    /// Runs the subcommand and prints an error to standard error.
    #[must_use]
    pub fn run(self) -> Exit {
        let result = match self.command {
            Command::Run(args) => on_runtime(run::run(&args)),
            Command::Failover(args) => on_runtime(failover::run(&args)),
            Command::FailoverJudge(args) => failover_judge::run(&args),
            Command::FailoverReport(args) => failover_report::run(&args),
            Command::Soak(args) => on_runtime(soak::run(&args)),
            Command::Topology(args) => on_runtime(topology::run(&args)),
            Command::Worker => {
                return if worker::serve() {
                    Exit::Ok
                } else {
                    Exit::Measurement
                };
            }
            Command::FailoverWorker => {
                return if crate::failover::serve() {
                    Exit::Ok
                } else {
                    Exit::Measurement
                };
            }
            Command::Spin { core } => {
                return match spin::run(core) {
                    Ok(()) => Exit::Ok,
                    Err(reason) => {
                        eprintln!("locktopus-bench: {reason}");
                        Exit::Measurement
                    }
                };
            }
            Command::Report(args) => report::run(&args),
            Command::Targets(args) => targets::run(&args),
            Command::Completions(args) => {
                pages::completions(&args, Self::command()).map(|()| Exit::Ok)
            }
            Command::Man => pages::man(Self::command()).map(|()| Exit::Ok),
        };
        result.unwrap_or_else(|error| {
            eprintln!("locktopus-bench: {error}");
            error.exit()
        })
    }
}

fn on_runtime(
    work: impl Future<Output = Result<Exit, CommandError>>,
) -> Result<Exit, CommandError> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CommandError::Usage(format!("cannot start a runtime: {error}")))?
        .block_on(work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    /// As in a plan, a count of zero is an error: the run would do nothing.
    #[test]
    fn a_number_of_what_is_done_is_at_least_one() {
        for (command, flag) in [
            ("failover", "--failovers"),
            ("failover", "--deployments"),
            ("run", "--rounds"),
        ] {
            let parse = |count| Cli::try_parse_from(["locktopus-bench", command, flag, count]);
            assert!(parse("1").is_ok(), "{flag}");
            let error = parse("0").unwrap_err();
            assert_eq!(error.exit_code(), i32::from(Exit::Usage as u8), "{flag}");
            assert!(error.to_string().contains(flag), "{error}");
        }
    }
}
