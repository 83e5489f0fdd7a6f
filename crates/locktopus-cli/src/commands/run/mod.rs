//! `run`: a program under a lock.
//!
//! The program is never to run without the lock. So it has a process group of its own, which is
//! ended, by `TERM` and then `KILL`, while the lease still lasts; and a guardian, a process beside
//! this one, ends it if this one is killed.
//!
//! | file | what it is |
//! |---|---|
//! | `grace` | how long ending takes, and whether the lease leaves that much |
//! | `terminal` | whom the terminal listens to |
//! | `group` | the program's processes |
//! | `supervise` | until the program ends, or has to |
//! | `guardian` | what is left if this process is killed |

mod grace;
mod group;
pub(crate) mod guardian;
mod supervise;
pub(crate) mod terminal;

use std::ffi::OsString;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use humantime::parse_duration;
use locktopus::{Label, LockError, LockGuard, LockKind, Locktopus, LostCause};
use rustix::process::Signal;

use super::Context;
use super::signals::Signals;
use crate::exit::{Exit, of_signal};
use crate::failure::Failure;
use crate::locks::{
    LabelArgs, Lasting, LockArgs, NameArg, Terms, acquire, busy, close, connect_as, request,
};
use grace::Grace;
use group::Program;
use guardian::Guardian;
use supervise::{Ended, supervise};

/// For how long a wait for the lock goes without saying, and how long the next one waits for its
/// turn.
const PATIENCE: Duration = Duration::from_secs(1);

/// What to run, under which lock.
///
/// The program has its own process group and gets the signals that are sent to locktopus. It finds
/// LOCKTOPUS_NAME and, if the kind has one, its fencing LOCKTOPUS_TOKEN in its environment. When
/// the lock is lost, or can no longer be renewed in time, its whole group is ended by TERM, and by
/// KILL after --grace, before the lease ends; the status is 76 then. What it leaves running in its
/// group when it ends is ended too, before the lock is given back.
#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    name: NameArg,

    #[command(flatten)]
    lock: LockArgs,

    /// How many permits of a semaphore
    #[arg(long, default_value_t = 1)]
    permits: u32,

    /// How long to wait for the lock; 0s: not at all. Without this: as long as it takes
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    wait: Option<Duration>,

    /// Length of the lease, which is renewed after a third: how long a machine that dies blocks the
    /// lock. Default: what the URL says, else 30s
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    pub(super) lease: Option<Duration>,

    /// End the program after this long, renewal or not
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    pub(super) max_hold: Option<Duration>,

    /// However early the program ends, leave the lock held until so long after it was taken, so
    /// that a machine whose clock is late does not run it again
    #[arg(long, value_parser = parse_duration, value_name = "TIME", default_value = "0s")]
    at_least: Duration,

    /// If somebody else holds the lock, do nothing and exit with 0
    #[arg(long)]
    skip_if_held: bool,

    /// How long the program may take to end after TERM before it gets KILL. Must fit into a third
    /// of the lease, less half a second. Default: a sixth of the lease, at most 5s
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
    /// A program under a mutex, and nothing else said.
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
            at_least: Duration::ZERO,
            skip_if_held: false,
            grace: None,
            label: LabelArgs::default(),
            foreground: false,
            command,
        }
    }

    /// What those see who look at the lock: for as long as it may stay held after the end, too.
    fn label(&self, context: &Context) -> Result<Option<Label>, Failure> {
        let label = self.label.label(&context.config)?;
        Ok(label.map(|label| label.left_for(self.at_least)))
    }

    /// How to end the program. Checks the options before anything is sent.
    fn checked_grace(&self, context: &Context) -> Result<Grace, Failure> {
        let configured = context.config.lease();
        Grace::within(self.lease, configured, self.max_hold, self.grace)
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

/// Runs it again whenever its lock was lost or could not be had, until it ends by itself.
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
            () = tokio::time::sleep(PATIENCE) => {}
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
        Taken::Lock(guard) => guard,
        Taken::Busy(failure) if args.skip_if_held => {
            context.out.say(&format!("skipped: {}", failure.message));
            return Ok(Exit::Ok.code());
        }
        Taken::Busy(failure) => return Err(failure),
        Taken::Interrupted(signal) => return Ok(of_signal(signal)),
    };
    let work = async {
        let mut guardian = Guardian::start().map_err(|error| {
            Failure::new(Exit::Failed, format!("cannot start the guardian: {error}"))
        })?;
        let mut program = start(args, &guard)?;
        let ended = async {
            guardian.watch(&program, grace).await?;
            supervise(
                &mut program,
                &guard,
                grace,
                args.max_hold,
                signals,
                context.out,
            )
            .await
        };
        let ended = ended.await;
        if ended.is_err() {
            program.send(Signal::KILL);
        }
        guardian.dismiss().await;
        ended.map_err(|error| {
            Failure::new(Exit::Failed, format!("cannot watch the program: {error}"))
        })
    };
    let ended = work.await;
    let released = guard.release().await;
    judge(ended?, released, context)
}

/// What came of waiting for the lock.
enum Taken {
    Lock(LockGuard),
    Busy(Failure),
    Interrupted(Signal),
}

async fn take(
    args: &RunArgs,
    context: &Context,
    locks: &Locktopus,
    signals: &mut Signals,
) -> Result<Taken, Failure> {
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
        tokio::time::sleep(PATIENCE).await;
        context
            .out
            .say(&format!("waiting for {:?}", args.name.get()));
        std::future::pending().await
    };
    tokio::select! {
        taken = acquiring => match taken? {
            Some(guard) => Ok(Taken::Lock(guard)),
            None => Ok(Taken::Busy(busy(locks, args.name.get(), &args.lock).await)),
        },
        signal = signals.next_that_ends() => Ok(Taken::Interrupted(signal)),
        () = telling => Ok(Taken::Interrupted(Signal::TERM)),
    }
}

fn start(args: &RunArgs, guard: &LockGuard) -> Result<Program, Failure> {
    let token = guard.token().map(locktopus::FencingToken::get);
    Program::start(&args.command, args.name.get(), token, args.foreground).map_err(|error| {
        let exit = match error.kind() {
            io::ErrorKind::NotFound => Exit::NoProgram,
            _ => Exit::CannotStart,
        };
        let name = args.command.first().map(|name| name.display().to_string());
        let name = name.filter(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| "a program without a name".to_owned());
        let problem = format!("cannot start {name}: {error}");
        Failure::new(exit, problem)
    })
}

fn judge(ended: Ended, released: Result<(), LockError>, context: &Context) -> Result<u8, Failure> {
    match ended {
        Ended::Stopped { why, how } => {
            // The release also asks for the reason, if an operator broke the lock.
            let why = match released {
                Err(LockError::Lost { cause, .. })
                    if matches!(cause, LostCause::Evicted { .. }) =>
                {
                    format!("the lock is lost: {cause}")
                }
                _ => why,
            };
            let problem = format!("{why}; the program was stopped ({how})");
            Err(Failure::new(Exit::Lost, problem))
        }
        Ended::Itself(status) => match released {
            Ok(()) => Ok(status),
            Err(error @ LockError::Lost { .. }) => {
                let lost = Failure::from(error).message;
                let problem = format!(
                    "the program ended with {status}, but somebody else may have held the lock: {lost}"
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
