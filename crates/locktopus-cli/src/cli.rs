//! The command line of `locktopus`.

use std::path::PathBuf;

use clap::{Args, CommandFactory as _, Parser, Subcommand};
use tracing::level_filters::LevelFilter;

use crate::commands::{
    Context, break_lock, config, doctor, failover, harness, job, latch, leader, list, pages, run,
    semaphore, status, ticket, top, watch,
};
use crate::config::{Config, Flags, Process};
use crate::exit::{self, Exit};
use crate::failure::Failure;
use crate::output::{Format, Output, log};
use crate::usage;

/// Run programs under distributed locks, inspect locks and break them
///
/// The servers come from --url, else the variable LOCKTOPUS_URL, else url = "..." in
/// $XDG_CONFIG_HOME/locktopus/config.toml or ./locktopus.toml. Put a password in the variable or
/// the file: everyone on the machine can see a command line.
#[derive(Debug, Parser)]
#[command(name = "locktopus", version, after_help = exit::HELP)]
pub(crate) struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Command,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Global options")]
struct Globals {
    /// URL of the servers; repeat it for the nodes of a quorum. config --help lists its options
    #[arg(long, global = true, value_name = "URL")]
    url: Vec<String>,

    /// Read this configuration file and no other
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Format of answers and errors; also LOCKTOPUS_FORMAT
    #[arg(long, global = true, value_enum)]
    format: Option<Format>,

    /// Print only answers and errors: no warnings, no dangers found at connect, no skipped runs
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,

    /// Show the whole log
    #[arg(short, long, global = true)]
    verbose: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<run::RunArgs>),
    Leader(leader::LeaderArgs),
    Job(Box<job::JobArgs>),
    Lock(ticket::LockCommand),
    Unlock(ticket::UnlockCommand),
    Extend(ticket::ExtendCommand),
    Status(status::StatusArgs),
    Ls(list::ListArgs),
    Watch(watch::WatchArgs),
    Top(top::TopArgs),
    Break(break_lock::BreakArgs),
    /// Set, count down and wait for latches
    #[command(subcommand)]
    Latch(latch::LatchCommand),
    /// Init, resize, drain and show the permits of a semaphore
    #[command(subcommand)]
    Semaphore(semaphore::SemaphoreCommand),
    Doctor(doctor::DoctorArgs),
    /// Show the configuration and where it comes from
    #[command(after_long_help = config::URL_OPTIONS)]
    Config,
    /// Measure locks (runs locktopus-bench run)
    ///
    /// locktopus-bench is another program. Install the package locktopus-bench (scripts/package
    /// makes a .deb), or build it with cargo install --path bench-harness in the repository.
    #[command(disable_help_flag = true)]
    Bench(harness::HarnessArgs),
    Failover(failover::FailoverArgs),
    Completions(pages::CompletionsArgs),
    /// Print the manual page
    Man,
    /// Stops the program of a `run` that was killed
    #[command(hide = true)]
    RunGuardian,
    #[command(hide = true)]
    RunLauncher(run::launch::LaunchArgs),
}

impl Cli {
    /// Runs the command and reports failures on standard error. Returns the exit code.
    pub(crate) fn run(self) -> u8 {
        let format = self
            .globals
            .format
            .unwrap_or_else(usage::format_of_environment);
        match self.command {
            Command::RunGuardian => run::guardian::serve(),
            Command::RunLauncher(args) => run::launch::serve(&args),
            Command::Completions(args) => pages::completions(&args, Self::command()),
            Command::Man => pages::man(Self::command()),
            Command::Bench(args) => fail_with(format, harness::hand_over("run", &args)),
            Command::Failover(args) => match args.for_harness() {
                Some(args) => fail_with(format, harness::hand_over("failover", args)),
                None => configured(self.globals, Command::Failover(args), format),
            },
            command => configured(self.globals, command, format),
        }
    }
}

/// Runs a command that reads the configuration.
fn configured(globals: Globals, command: Command, format: Format) -> u8 {
    if matches!(
        command,
        Command::Run(_) | Command::Leader(_) | Command::Job(_)
    ) {
        run::terminal::prepare();
    }
    let (level, checks) = command.log_levels(&globals);
    let quiet = globals.quiet;
    let flags = Flags {
        urls: globals.url,
        format: globals.format,
        file: globals.config,
    };
    let config = match Config::load(flags, &Process) {
        Ok(config) => config,
        Err(failure) => return fail_with(format, failure),
    };
    log(config.format.value, level, checks);
    let context = Context {
        out: Output::new(config.format.value, quiet),
        config,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let done = match runtime {
        Ok(runtime) => runtime.block_on(command.execute(&context)),
        Err(error) => {
            let problem = format!("cannot start a runtime: {error}");
            Err(Failure::new(Exit::Failed, problem))
        }
    };
    done.unwrap_or_else(|failure| {
        context.out.fail(&failure);
        failure.exit.code()
    })
}

fn fail_with(format: Format, failure: Failure) -> u8 {
    Output::new(format, false).fail(&failure);
    failure.exit.code()
}

impl Command {
    /// The levels of the log and of the connect-time checks. Checks log only dangers unless
    /// `--verbose`.
    fn log_levels(&self, globals: &Globals) -> (LevelFilter, LevelFilter) {
        match self {
            // `top` owns the screen.
            Self::Top(_) => (LevelFilter::OFF, LevelFilter::OFF),
            _ if globals.verbose => (LevelFilter::DEBUG, LevelFilter::DEBUG),
            // Both report on the servers themselves.
            Self::Doctor(_) | Self::Failover(_) => (LevelFilter::ERROR, LevelFilter::OFF),
            _ if globals.quiet => (LevelFilter::ERROR, LevelFilter::OFF),
            _ => (LevelFilter::WARN, LevelFilter::ERROR),
        }
    }

    async fn execute(self, context: &Context) -> Result<u8, Failure> {
        match self {
            Self::Run(args) => return run::run(&args, context).await,
            Self::Leader(args) => return leader::run(args, context).await,
            Self::Job(args) => return job::run(*args, context).await,
            Self::Lock(args) => return ticket::lock(&args, context).await,
            Self::Unlock(args) => ticket::unlock(&args, context).await,
            Self::Extend(args) => ticket::extend(&args, context).await,
            Self::Status(args) => return status::run(&args, context).await,
            Self::Ls(args) => list::run(&args, context).await,
            Self::Watch(args) => return watch::run(&args, context).await,
            Self::Top(args) => top::run(&args, context).await,
            Self::Break(args) => break_lock::run(args, context).await,
            Self::Latch(command) => latch::run(command, context).await,
            Self::Semaphore(command) => semaphore::run(command, context).await,
            Self::Doctor(args) => return doctor::run(&args, context).await,
            Self::Config => config::run(context),
            Self::Failover(args) => return failover::run(&args, context).await,
            Self::Bench(_)
            | Self::Completions(_)
            | Self::Man
            | Self::RunGuardian
            | Self::RunLauncher(_) => Ok(()),
        }?;
        Ok(Exit::Ok.code())
    }
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
