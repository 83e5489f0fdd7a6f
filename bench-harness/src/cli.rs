//! Command line of `locktopus-bench`.

use std::io::IsTerminal as _;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::cmd::{
    CommandError, compare, failover, failover_report, report, run, targets, topology,
};
use crate::exit::{self, Exit};
use crate::report::Style;
use crate::{spin, worker};

/// Measures distributed locks and shows what came out.
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
    /// Do faults to servers under lock load, and report what happened to the locks.
    Failover(Box<failover::FailoverArgs>),
    /// Render a stored run of `failover`.
    FailoverReport(failover_report::FailoverReportArgs),
    /// Start and stop servers.
    Topology(topology::TopologyArgs),
    /// Be a worker process of `run`.
    #[command(hide = true)]
    Worker,
    /// Be a worker process of `failover`.
    #[command(hide = true)]
    FailoverWorker,
    /// Keep a core from sleeping.
    #[command(hide = true)]
    Spin {
        /// Which core.
        core: u32,
    },
    /// Render a stored run as table, CSV, .hgrm or HTML.
    Report(report::ReportArgs),
    /// Compare two stored runs.
    Compare(compare::CompareArgs),
    /// Judge stored runs by what is promised, and write the page about it.
    Targets(targets::TargetsArgs),
}

/// How text is laid out; shared by the subcommands that print tables.
#[derive(Clone, Copy, Debug, Args)]
pub struct TextArgs {
    /// Columns of the table; those of the terminal by default, 100 without one.
    #[arg(long, value_name = "COLUMNS")]
    pub width: Option<u16>,
    /// When to write colour; `auto` heeds `NO_COLOR`.
    #[arg(long, value_enum, default_value_t)]
    pub color: When,
}

/// When to write colour.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum When {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Even into a file.
    Always,
    /// Not at all.
    Never,
}

impl TextArgs {
    /// The style these arguments and the terminal ask for.
    #[must_use]
    pub fn style(self) -> Style {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colour = match self.color {
            When::Always => true,
            When::Never => false,
            When::Auto => !no_color && std::io::stdout().is_terminal(),
        };
        let default = Style::default().width;
        let width = self
            .width
            .unwrap_or_else(|| comfy_table::Table::new().width().unwrap_or(default));
        Style { width, colour }
    }
}

impl Cli {
    /// Runs the subcommand and reports failures on standard error.
    #[must_use]
    pub fn run(self) -> Exit {
        let result = match self.command {
            Command::Run(args) => on_runtime(run::run(&args)),
            Command::Failover(args) => on_runtime(failover::run(&args)),
            Command::FailoverReport(args) => failover_report::run(&args),
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
            Command::Spin { core } => return spin::run(core),
            Command::Report(args) => report::run(&args),
            Command::Compare(args) => compare::run(&args),
            Command::Targets(args) => targets::run(&args),
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
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn arguments_are_consistent() {
        Cli::command().debug_assert();
    }
}
