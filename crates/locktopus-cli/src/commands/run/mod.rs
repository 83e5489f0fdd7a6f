//! `run`: runs a program under a lock.
//!
//! The program must never run without the lock. So it gets its own process group, which `run` ends
//! with `TERM` and then `KILL` before the lease ends. A second process, the guardian, does that if
//! `run` itself is killed.
//!
//! | file | what it is |
//! |---|---|
//! | `grace` | how long ending the program may take |
//! | `terminal` | hands the terminal to the program |
//! | `group` | the processes of the program |
//! | `launch` | starts the program so that the guardian knows it first |
//! | `lookup` | looks for the program before a lock is taken |
//! | `supervise` | watches the program and the lease |
//! | `guardian` | ends the program if this process is killed |

mod grace;
mod group;
pub(crate) mod guardian;
pub(crate) mod launch;
mod lookup;
mod supervise;
pub(crate) mod terminal;

use std::ffi::OsString;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use locktopus::url::parse_duration;
use locktopus::{Label, Lease, LockError, LockGuard, LockKind, LockRequest, Locktopus, LostCause};
use rustix::process::Signal;

use super::Context;
use super::signals::Signals;
use crate::exit::{Exit, of_signal};
use crate::failure::Failure;
use crate::locks::{
    LabelArgs, Lasting, LockArgs, NameArg, Terms, acquire, busy, close, connect_as, request,
};
pub(super) use grace::Grace;
use group::Program;
use guardian::Guardian;
use launch::Launch;
pub(super) use supervise::Ended;
use supervise::{lost, supervise};

/// How long a wait for the lock stays silent.
const SILENT_WAIT: Duration = Duration::from_secs(1);

/// The pause before the next attempt to lead.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Run a program under a lock
///
/// The program has its own process group and gets the signals that are sent to locktopus. Its
/// environment has LOCKTOPUS_NAME and, if the kind has fencing tokens, LOCKTOPUS_TOKEN. If the lock
/// is lost or cannot be renewed in time, run ends the whole group before the lease ends, with TERM,
/// and with KILL after --grace; it exits with 76 then. When the program ends, run ends what is left
/// of its group, then releases the lock.
#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(super) name: NameArg,

    #[command(flatten)]
    lock: LockArgs,

    /// Number of permits to take from a semaphore
    #[arg(long, default_value_t = 1)]
    permits: u32,

    /// How long to wait for the lock once connected; 0s: do not wait. Default: without limit. For
    /// connecting, connect_timeout= in the URL counts
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    wait: Option<Duration>,

    /// Length of the lease, renewed after a third. A machine that dies blocks the lock for at most
    /// this long. Default: that of the URL, else 30s
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    pub(super) lease: Option<Duration>,

    /// End the program before it has held the lock for this long
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    pub(super) max_hold: Option<Duration>,

    /// The option that set `max_hold`.
    #[arg(skip = "--max-hold")]
    pub(super) max_hold_option: &'static str,

    /// Keep the lock for at least this long, however early the program ends, so that a machine
    /// whose clock is behind does not run it again
    #[arg(long, value_parser = parse_duration, value_name = "TIME", default_value = "0s")]
    at_least: Duration,

    /// If someone else holds the lock, do nothing and exit with 0. Does not wait unless --wait says
    /// so
    #[arg(long)]
    skip_if_held: bool,

    /// Time the program has to end after TERM before it gets KILL. Must fit into a third of the
    /// lease, less half a second. Default: a sixth of the lease, at most 5s
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    pub(super) grace: Option<Duration>,

    #[command(flatten)]
    pub(super) label: LabelArgs,

    /// Leave the program in this process group. run then ends only the program, not its children
    #[arg(long)]
    foreground: bool,

    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl RunArgs {
    /// A program under a mutex, with default options.
    pub(crate) fn of_a_mutex(name: NameArg, command: Vec<OsString>) -> Self {
        Self {
            name,
            lock: LockArgs {
                kind: Some(LockKind::Mutex(Arc::default())),
                profile: None,
            },
            permits: 1,
            wait: None,
            lease: None,
            max_hold: None,
            max_hold_option: "--max-hold",
            at_least: Duration::ZERO,
            skip_if_held: false,
            grace: None,
            label: LabelArgs::default(),
            foreground: false,
            command,
        }
    }

    /// The label. It lasts as long as the lock may stay held after the program ends.
    pub(super) fn label(&self, context: &Context) -> Result<Option<Label>, Failure> {
        let label = self.label.label(&context.config)?;
        Ok(label.map(|label| label.left_for(self.at_least)))
    }

    /// The grace for ending the program. Checks the options, and that there is a program, before
    /// anything is sent.
    pub(super) fn checked_grace(&self, context: &Context) -> Result<Grace, Failure> {
        let configured = context.config.lease();
        let max_hold = self.max_hold.map(|time| (self.max_hold_option, time));
        let grace = Grace::within(self.lease, configured, max_hold, self.grace)?;
        let program = self.command.first().map(OsString::as_os_str);
        lookup::look_up(program.unwrap_or_default()).map_err(|error| cannot_start(self, &error))?;
        Ok(grace)
    }
}

pub(crate) async fn run(args: &RunArgs, context: &Context) -> Result<u8, Failure> {
    let grace = args.checked_grace(context)?;
    let mut signals = Signals::new()?;
    let locks = connect_as(&context.config, args.label(context)?).await?;
    let done = under_lock(args, context, &locks, grace, &mut signals).await;
    close(locks).await;
    done
}

/// Runs the program again whenever the lock is lost or unreachable, until the program ends on its
/// own.
pub(crate) async fn run_again(args: &RunArgs, context: &Context) -> Result<u8, Failure> {
    let grace = args.checked_grace(context)?;
    let mut signals = Signals::new()?;
    let locks = connect_as(&context.config, args.label(context)?).await?;
    let done = loop {
        match under_lock(args, context, &locks, grace, &mut signals).await {
            Err(failure) if [Exit::Lost, Exit::Unavailable].contains(&failure.exit) => {
                context.out.say(&failure.message);
            }
            done => break done,
        }
        tokio::select! {
            () = tokio::time::sleep(RETRY_PAUSE) => {}
            signal = signals.next_that_ends() => break Ok(of_signal(signal)),
        }
    };
    close(locks).await;
    done
}

async fn under_lock(
    args: &RunArgs,
    context: &Context,
    locks: &Locktopus,
    grace: Grace,
    signals: &mut Signals,
) -> Result<u8, Failure> {
    let guard = match take(args, context, locks, signals).await? {
        Acquisition::Lock(guard) => guard,
        Acquisition::Busy(failure) if args.skip_if_held => {
            context.out.say(&format!("skipped: {}", failure.message));
            return Ok(Exit::Ok.code());
        }
        Acquisition::Busy(failure) => return Err(failure),
        Acquisition::Interrupted(signal) => return Ok(of_signal(signal)),
    };
    match supervised(args, context, &guard.lease(), grace, signals, &[]).await {
        Err(failure) if failure.is_no_start() => {
            let asked = request(locks, args.name.get(), &args.lock, args.permits)?;
            if let Err(error) = release_at_once(guard, asked).await {
                context.out.say(&Failure::from(error).message);
            }
            Err(failure)
        }
        ended => {
            let released = guard.release().await;
            judge(args, ended?, released, context)
        }
    }
}

/// Releases the lock in spite of `--at-least`, which `asked` lacks: nothing has run.
async fn release_at_once(guard: LockGuard, asked: LockRequest) -> Result<(), LockError> {
    match guard.into_ticket() {
        Ok(ticket) => asked.adopt(&ticket).await?.release().await,
        Err(guard) => guard.release().await,
    }
}

/// Runs the program under this lease, with these variables, until it ends or has to.
pub(super) async fn supervised(
    args: &RunArgs,
    context: &Context,
    lease: &Lease,
    grace: Grace,
    signals: &mut Signals,
    variables: &[(&str, String)],
) -> Result<Ended, Failure> {
    let mut guardian = Guardian::start().map_err(|error| {
        Failure::new(
            Exit::CannotStart,
            format!("cannot start the guardian: {error}"),
        )
    })?;
    let whole = !args.foreground;
    let launch = Launch::of(&args.command, &guardian, whole, grace);
    let launch = launch.map_err(|error| cannot_start(args, &error))?;
    let registers = launch.registers();
    let mut program = start(args, launch, lease, variables)?;
    let ended = async {
        if !registers {
            guardian.watch(program.group(), grace).await?;
        }
        let (name, hold, out) = (args.name.get(), args.max_hold, context.out);
        supervise(&mut program, name, lease, grace, hold, signals, out).await
    };
    let ended = ended.await;
    if ended.is_err() {
        program.send(Signal::KILL);
    }
    if let Some(error) = guardian.dismiss().await {
        return Err(cannot_start(args, &error));
    }
    ended.map_err(|error| Failure::new(Exit::Failed, format!("cannot watch the program: {error}")))
}

/// The outcome of waiting for the lock.
enum Acquisition {
    Lock(LockGuard),
    Busy(Failure),
    Interrupted(Signal),
}

async fn take(
    args: &RunArgs,
    context: &Context,
    locks: &Locktopus,
    signals: &mut Signals,
) -> Result<Acquisition, Failure> {
    let terms = Terms {
        lasting: Lasting::Renewed(args.lease),
        max_hold: args.max_hold,
        at_least: args.at_least,
        wait: args
            .wait
            .or_else(|| args.skip_if_held.then_some(Duration::ZERO)),
    };
    let asked = request(locks, args.name.get(), &args.lock, args.permits)?;
    let acquiring = acquire(asked, terms);
    let telling = async {
        tokio::time::sleep(SILENT_WAIT).await;
        context
            .out
            .say(&format!("waiting for {:?}", args.name.get()));
        std::future::pending().await
    };
    tokio::select! {
        taken = acquiring => match taken? {
            Some(guard) => Ok(Acquisition::Lock(guard)),
            None => Ok(Acquisition::Busy(busy(locks, args.name.get(), &args.lock).await)),
        },
        signal = signals.next_that_ends() => Ok(Acquisition::Interrupted(signal)),
        () = telling => Ok(Acquisition::Interrupted(Signal::TERM)),
    }
}

fn start(
    args: &RunArgs,
    launch: Launch,
    lease: &Lease,
    variables: &[(&str, String)],
) -> Result<Program, Failure> {
    let token = lease.token().map(locktopus::FencingToken::get);
    let name = args.name.get();
    let started = Program::start(launch, name, token, variables, args.foreground);
    started.map_err(|error| cannot_start(args, &error))
}

fn cannot_start(args: &RunArgs, error: &io::Error) -> Failure {
    let exit = match error.kind() {
        io::ErrorKind::NotFound => Exit::NoProgram,
        _ => Exit::CannotStart,
    };
    let name = args.command.first().map(|name| name.display().to_string());
    let name = name.filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| "a program without a name".to_owned());
    Failure::new(exit, format!("cannot start {name}: {error}"))
}

fn judge(
    args: &RunArgs,
    ended: Ended,
    released: Result<(), LockError>,
    context: &Context,
) -> Result<u8, Failure> {
    match ended {
        Ended::Stopped { why, how } => {
            // If an operator broke the lock, the release has learned the reason.
            let why = match released {
                Err(LockError::Lost { cause, .. })
                    if matches!(cause, LostCause::Evicted { .. }) =>
                {
                    lost(args.name.get(), &cause)
                }
                _ => why,
            };
            let problem = format!("{why}; the program was stopped with {how}");
            Err(Failure::new(Exit::Lost, problem))
        }
        Ended::Itself(status) => match released {
            Ok(()) => Ok(status),
            Err(error @ LockError::Lost { .. }) => {
                let lost = Failure::from(error).message;
                let problem = format!(
                    "the program ended with {status}, but another holder may have had its lock: {lost}"
                );
                Err(Failure::new(Exit::Lost, problem))
            }
            Err(error) => {
                context.out.say(&Failure::from(error).message);
                Ok(status)
            }
        },
    }
}
