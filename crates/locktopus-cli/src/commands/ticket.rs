//! `lock`, `unlock`, `extend`: locks for scripts, passed from one command to the next as a ticket.
//!
//! A ticket is enough to release the lock, and everyone on the machine can see arguments. So it is
//! never an argument.

mod store;

use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use locktopus::url::parse_duration;
use locktopus::{LeaseTicket, LockError, LockGuard, Locktopus, LostCause};
use rustix::fs::OFlags;
use serde::Serialize;

use super::Context;
use super::signals::Signals;
use crate::exit::{Exit, of_signal};
use crate::failure::Failure;
use crate::locks::{
    LabelArgs, Lasting, LockArgs, Terms, acquire, busy, close, connect, connect_as, request,
};
use store::{Content, TicketArgs, TicketFile};

/// Minimum time to keep the label of a lock. `extend` extends the lock but not its label.
const LABEL_LEFT: Duration = Duration::from_secs(24 * 60 * 60);

/// Take a lock that is not renewed, and print a ticket for it
#[derive(Args, Debug)]
pub(crate) struct LockCommand {
    /// The lock's name, without the namespace
    name: String,

    #[command(flatten)]
    lock: LockArgs,

    /// How long to hold the lock, unless it is released or extended
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    lease: Duration,

    /// How long to wait for the lock once connected; 0s: do not wait. Default: without limit. For
    /// connecting, connect_timeout= in the URL counts
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    wait: Option<Duration>,

    /// Number of permits to take from a semaphore
    #[arg(long, default_value_t = 1)]
    permits: u32,

    #[command(flatten)]
    label: LabelArgs,

    /// Write the ticket to this file, which only you can read, instead of to standard output.
    /// Replaces an old ticket whose lock is no longer held
    #[arg(long, value_name = "FILE")]
    ticket_file: Option<PathBuf>,
}

/// Release a lock by its ticket
#[derive(Args, Debug)]
pub(crate) struct UnlockCommand {
    /// The lock's name, as given to lock
    name: String,

    #[command(flatten)]
    lock: LockArgs,

    #[command(flatten)]
    ticket: TicketArgs,
}

/// Extend a lock by its ticket
#[derive(Args, Debug)]
pub(crate) struct ExtendCommand {
    /// The lock's name, as given to lock
    name: String,

    #[command(flatten)]
    lock: LockArgs,

    /// Hold the lock for at least this long from now
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    lease: Duration,

    #[command(flatten)]
    ticket: TicketArgs,
}

#[derive(Serialize)]
struct Granted {
    name: String,
    token: Option<u64>,
    lease_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ticket: Option<String>,
}

pub(crate) async fn lock(args: &LockCommand, context: &Context) -> Result<u8, Failure> {
    if args.ticket_file.is_none() && is_closed(io::stdout()) {
        return Err(Failure::usage(
            "standard output is closed, so the ticket would be lost and no lock was taken; give --ticket-file, or discard \
             the ticket with >/dev/null",
        ));
    }
    let mut signals = Signals::new()?;
    let label = args.label.label(&context.config)?;
    // This process is gone before anyone inspects the lock.
    let left = args.lease.max(LABEL_LEFT);
    let label = label.map(|label| label.without_process().left_for(left));
    let mut file = args
        .ticket_file
        .as_deref()
        .map(TicketFile::create)
        .transpose()?;
    let locks = tokio::select! {
        locks = connect_as(&context.config, label) => locks?,
        signal = signals.next_that_ends() => return Ok(of_signal(signal)),
    };
    let taken = tokio::select! {
        taken = async {
            may_write(file.as_ref(), args, &locks).await?;
            take(args, &locks).await
        } => taken.map(Ok),
        signal = signals.next_that_ends() => Ok(Err(signal)),
    };
    // No signal interrupts from here on: the ticket is written, or the lock released.
    let done = match taken {
        Ok(Ok(guard)) => hand_out(guard, file.as_mut(), args, &locks, context).await,
        Ok(Err(signal)) => Ok(of_signal(signal)),
        Err(failure) => Err(failure),
    };
    close(locks).await;
    done
}

/// Writes the ticket. Releases the lock if that fails.
async fn hand_out(
    guard: LockGuard,
    mut file: Option<&mut TicketFile>,
    args: &LockCommand,
    locks: &Locktopus,
    context: &Context,
) -> Result<u8, Failure> {
    let ticket = guard.into_ticket().map_err(|_| {
        let problem = format!(
            "lock {:?} was lost before its ticket could be written",
            args.name
        );
        Failure::new(Exit::Lost, problem)
    })?;
    let told = async {
        // Another holder of the semaphore may have written its ticket meanwhile.
        may_write(file.as_deref(), args, locks).await?;
        tell(&ticket, file.as_deref_mut(), args, context)
    };
    let Err(mut failure) = told.await else {
        return Ok(Exit::Ok.code());
    };
    let released = async {
        let guard = adopt(locks, &args.name, &args.lock, &ticket, None).await?;
        guard.release().await.map_err(Failure::from)
    };
    if failure.exit == Exit::NoReader {
        failure.message = "the ticket has no reader: standard output is a closed pipe".to_owned();
    }
    failure.message.push_str(&match released.await {
        Ok(()) => format!("; lock {:?} was released again", args.name),
        Err(error) => format!(
            "; the lock stays held until its lease ends: {}",
            error.message
        ),
    });
    Err(failure)
}

/// Whether this descriptor was closed when the process started. Rust opens such descriptors as the
/// null device, for reading and writing; a shell's `>/dev/null` is only for writing.
fn is_closed(descriptor: impl AsFd) -> bool {
    let is_null = || {
        let opened = rustix::fs::fstat(&descriptor).ok()?;
        let null = rustix::fs::stat("/dev/null").ok()?;
        Some(opened.st_rdev == null.st_rdev && opened.st_mode == null.st_mode)
    };
    let mode = rustix::fs::fcntl_getfl(&descriptor);
    mode.is_ok_and(|mode| mode & OFlags::RWMODE == OFlags::RDWR) && is_null().unwrap_or(false)
}

fn tell(
    ticket: &LeaseTicket,
    file: Option<&mut TicketFile>,
    args: &LockCommand,
    context: &Context,
) -> Result<(), Failure> {
    let text = ticket.expose();
    let granted = |ticket_shown| Granted {
        name: args.name.clone(),
        token: ticket.token().map(locktopus::FencingToken::get),
        lease_ms: u64::try_from(args.lease.as_millis()).unwrap_or(u64::MAX),
        ticket: ticket_shown,
    };
    let line = |granted: &Granted| {
        let ticket = granted.ticket.clone();
        ticket.unwrap_or_else(|| granted.token.unwrap_or_default().to_string())
    };
    let Some(file) = file else {
        return context.out.answer(&granted(Some(text)), line);
    };
    file.write(&text)?;
    context.out.answer(&granted(None), line).inspect_err(|_| {
        file.remove();
    })
}

/// Fails if the file holds a ticket that is still needed.
async fn may_write(
    file: Option<&TicketFile>,
    args: &LockCommand,
    locks: &Locktopus,
) -> Result<(), Failure> {
    let Some(file) = file else {
        return Ok(());
    };
    let Content::Ticket(before) = file.content()? else {
        return Ok(());
    };
    let asked = request(locks, &args.name, &args.lock, before.permits())?;
    match asked.is_held_by(&before).await {
        Ok(false) => Ok(()),
        Ok(true) => Err(file.in_use("of a lock that is still held")),
        Err(LockError::Ticket { .. }) => Err(file.in_use("of another lock")),
        Err(error) => Err(error.into()),
    }
}

async fn take(args: &LockCommand, locks: &Locktopus) -> Result<LockGuard, Failure> {
    let terms = Terms {
        lasting: Lasting::Fixed(args.lease),
        max_hold: None,
        at_least: Duration::ZERO,
        wait: args.wait,
    };
    let asked = request(locks, &args.name, &args.lock, args.permits)?;
    match acquire(asked, terms).await? {
        Some(guard) => Ok(guard),
        None => Err(busy(locks, &args.name, &args.lock).await),
    }
}

pub(crate) async fn unlock(args: &UnlockCommand, context: &Context) -> Result<(), Failure> {
    let ticket = args.ticket.read()?;
    let locks = connect(&context.config).await?;
    let done = async {
        let guard = adopt(&locks, &args.name, &args.lock, &ticket, None).await?;
        guard.release().await.map_err(Failure::from)
    };
    let done = done.await;
    close(locks).await;
    let is_over = match &done {
        Ok(()) => true,
        Err(failure) => failure.exit == Exit::Lost,
    };
    if is_over {
        args.ticket.forget();
    }
    done
}

pub(crate) async fn extend(args: &ExtendCommand, context: &Context) -> Result<(), Failure> {
    let ticket = args.ticket.read()?;
    let locks = connect(&context.config).await?;
    let adopted = adopt(&locks, &args.name, &args.lock, &ticket, Some(args.lease)).await;
    // Dropping the guard would release the lock.
    let kept = adopted.map(LockGuard::into_ticket);
    close(locks).await;
    match kept? {
        Ok(_ticket) => Ok(()),
        Err(_lost) => {
            let problem = format!("lock {:?} was lost meanwhile", args.name);
            Err(Failure::new(Exit::Lost, problem))
        }
    }
}

/// Takes the lock over for this lease. Without one, only to release it.
async fn adopt(
    locks: &Locktopus,
    name: &str,
    args: &LockArgs,
    ticket: &LeaseTicket,
    lease: Option<Duration>,
) -> Result<LockGuard, Failure> {
    let lasting = lease.map_or(Lasting::Renewed(None), Lasting::Fixed);
    let terms = Terms {
        lasting,
        max_hold: None,
        at_least: Duration::ZERO,
        wait: None,
    };
    let request = terms.apply(request(locks, name, args, ticket.permits())?);
    request.adopt(ticket).await.map_err(|error| {
        let gone = matches!(
            error,
            LockError::Lost {
                cause: LostCause::Missing | LostCause::TakenOver,
                ..
            }
        );
        let mut failure = Failure::from(error);
        if gone {
            failure
                .message
                .push_str("; or its ticket was used to unlock it already");
        }
        failure
    })
}
