//! `lock`, `unlock`, `extend`: locks of scripts, which are passed from one command to the next by a ticket.
//!
//! A ticket is all that is needed to release the lock, so it is never an argument, which everybody on the machine can see.

mod store;

use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use clap::Args;
use humantime::parse_duration;
use locktopus::{AnyGuard, LeaseTicket, LockError, LockGuard, LockRequest, Locktopus};
use serde::Serialize;

use super::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::locks::{
    Asked, LabelArgs, Lasting, LockArgs, Terms, acquire, busy, close, connect, connect_as, request,
};
use store::TicketArgs;

/// How long the label of a lock is kept at least: `extend` makes the lock last longer, but not its label.
const LABEL_LEFT: Duration = Duration::from_secs(24 * 60 * 60);

/// Which lock to take, and for how long.
#[derive(Args, Debug)]
pub(crate) struct LockCommand {
    /// The lock's name, without the namespace
    name: String,

    #[command(flatten)]
    lock: LockArgs,

    /// How long it is held unless it is given back or extended
    #[arg(long, value_parser = parse_duration)]
    lease: Duration,

    /// How long to wait for it; 0s: not at all. Without this: as long as it takes
    #[arg(long, value_parser = parse_duration)]
    wait: Option<Duration>,

    /// How many permits of a semaphore
    #[arg(long, default_value_t = 1)]
    permits: u32,

    #[command(flatten)]
    label: LabelArgs,

    /// Write the ticket into this new file, which only you can read, instead of to standard output
    #[arg(long, value_name = "FILE")]
    ticket_file: Option<PathBuf>,
}

/// Which lock to give back.
#[derive(Args, Debug)]
pub(crate) struct UnlockCommand {
    /// The lock's name, as it was taken
    name: String,

    #[command(flatten)]
    lock: LockArgs,

    #[command(flatten)]
    ticket: TicketArgs,
}

/// Which lock to hold for longer.
#[derive(Args, Debug)]
pub(crate) struct ExtendCommand {
    /// The lock's name, as it was taken
    name: String,

    #[command(flatten)]
    lock: LockArgs,

    /// How long it is held from now on, at least
    #[arg(long, value_parser = parse_duration)]
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

pub(crate) async fn lock(args: &LockCommand, context: &Context) -> Result<(), Failure> {
    let label = args.label.label(&context.config)?;
    // This process is gone before anybody looks.
    let left = args.lease.max(LABEL_LEFT);
    let label = label.map(|label| label.without_process().left_for(left));
    let file = args.ticket_file.as_deref().map(store::create).transpose()?;
    let locks = connect_as(&context.config, label).await?;
    let taken = take(args, &locks).await;
    close(locks).await;
    let granted = taken.and_then(|ticket| {
        let text = ticket.expose();
        let ticket_shown = match file {
            Some(mut file) => {
                file.write(&text)?;
                None
            }
            None => Some(text),
        };
        let granted = Granted {
            name: args.name.clone(),
            token: ticket.token().map(locktopus::FencingToken::get),
            lease_ms: u64::try_from(args.lease.as_millis()).unwrap_or(u64::MAX),
            ticket: ticket_shown,
        };
        context.out.answer(&granted, |granted| {
            let ticket = granted.ticket.clone();
            ticket.unwrap_or_else(|| granted.token.unwrap_or_default().to_string())
        })
    });
    if granted.is_err()
        && let Some(path) = &args.ticket_file
    {
        // It is this command's own, and of no use without a ticket in it.
        let _ = std::fs::remove_file(path);
    }
    granted
}

async fn take(args: &LockCommand, locks: &Locktopus) -> Result<LeaseTicket, Failure> {
    let terms = Terms {
        lasting: Lasting::Fixed(args.lease),
        max_hold: None,
        at_least: Duration::ZERO,
        wait: args.wait,
    };
    let asked = request(locks, &args.name, &args.lock, args.permits)?;
    let Some(guard) = acquire(asked, terms).await? else {
        return Err(busy(locks, &args.name, &args.lock).await);
    };
    guard.into_ticket().map_err(|_| {
        let problem = "the lock was lost before its ticket could be written";
        Failure::new(Exit::Lost, problem)
    })
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
    done?;
    args.ticket.forget();
    Ok(())
}

pub(crate) async fn extend(args: &ExtendCommand, context: &Context) -> Result<(), Failure> {
    let ticket = args.ticket.read()?;
    let locks = connect(&context.config).await?;
    let adopted = adopt(&locks, &args.name, &args.lock, &ticket, Some(args.lease)).await;
    // Or the guard would release it.
    let kept = adopted.map(LockGuard::into_ticket);
    close(locks).await;
    match kept? {
        Ok(_ticket) => Ok(()),
        Err(_lost) => Err(Failure::new(Exit::Lost, "the lock was lost meanwhile")),
    }
}

struct Adopted<'a>(&'a LeaseTicket);

impl<'a> Asked for Adopted<'a> {
    type Output = Pin<Box<dyn Future<Output = Result<LockGuard, LockError>> + Send + 'a>>;

    fn ask<G: AnyGuard + Into<LockGuard>>(self, request: LockRequest<G>) -> Self::Output {
        Box::pin(async move { Ok(request.adopt(self.0).await?.into()) })
    }
}

/// Takes the lock over. Without a lease, for as long as it takes to give it back.
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
    let request = request(locks, name, args, ticket.permits())?.on(terms);
    Ok(request.ask(Adopted(ticket)).await?)
}
