//! The whole soak, from the first connection to the last check.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use locktopus::Locktopus;
use locktopus_servers::topology::{
    self, Deployment, Knobs, Node, ProviderKind, Spec, TopologyError, TopologyKind,
};
use tokio::sync::watch;

use super::asked::{Asked, Leak};
use super::checks::Seen;
use super::places::{Kind, Place};
use super::stream::Places;
use super::tally::Tally;
use super::witness::{self, Left, Own};
use super::{crowd, held, planted, stream};
use crate::shared::error_chain::chain;

/// The clients that compete.
const CLIENTS: [&str; 2] = ["redis", "fred"];
/// Time between two readings of memory.
const READING: Duration = Duration::from_millis(500);
/// Time between two progress lines.
const NEWS: Duration = Duration::from_secs(10);
/// The longest gathering time of a crowd.
const GATHERS: Duration = Duration::from_secs(20);
/// How long everything may take to disappear: a lease of thirty seconds, left behind by an attempt
/// that a restart cut off.
const GONE_WITHIN: Duration = Duration::from_secs(45);
/// The same when something is planted.
const PLANTED: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(200);
/// How long closing the clients may take.
const CLOSED_WITHIN: Duration = Duration::from_secs(30);
const SHUT_DOWN_WITHIN: Duration = Duration::from_secs(20);

/// Why a soak failed to run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SoakError {
    /// The server could not be started, or did not come back.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// No connection, or no permits for a semaphore.
    #[error("cannot begin: {0}")]
    Begin(String),
    /// This process cannot read its own state.
    #[error("cannot look at this process: {0}")]
    Witness(#[from] std::io::Error),
}

/// Runs the soak and returns the observations; calls `tell` with a line now and then.
///
/// # Errors
///
/// [`SoakError`] if it could not run; other problems are part of the observations.
pub async fn run(asked: &Asked, tell: impl Fn(&str) + Send + Sync) -> Result<Seen, SoakError> {
    let server = topology::start(ProviderKind::Plain, &spec()).await?;
    let done = with_server(asked, &server, &tell).await;
    let stopped = server.stop().await;
    let seen = done?;
    stopped?;
    Ok(seen)
}

/// One server that has all its data after a restart: it hands a write to the kernel before it
/// replies.
fn spec() -> Spec {
    Spec::new(TopologyKind::Standalone).with_knobs(Knobs {
        appendonly: true,
        extra_args: ["--appendfsync", "no"].map(ToOwned::to_owned).into(),
        ..Knobs::default()
    })
}

async fn with_server(
    asked: &Asked,
    server: &Deployment,
    tell: &(impl Fn(&str) + Send + Sync),
) -> Result<Seen, SoakError> {
    let node = &server.nodes()[0];
    let prefix = "soak";
    let mut seen = Seen {
        before: Own::now()?,
        ..Seen::default()
    };
    let begin = |error: &dyn std::error::Error| SoakError::Begin(chain(error));
    let mut clients = Vec::new();
    for client in CLIENTS {
        let joint = if server.url().contains('?') { '&' } else { '?' };
        let url = format!("{}{joint}client={client}&checks=off", server.url());
        clients.push(
            locktopus::connect(&url)
                .await
                .map_err(|error| begin(&error))?,
        );
    }
    let clients: Arc<[Locktopus]> = clients.into();
    let tally = Arc::new(Tally::new().map_err(|error| begin(&error))?);
    let places = Arc::new(Places::new(prefix, clients.len()));
    for place in places.counted() {
        let made = semaphore(&clients[0], place).initialise(1).await;
        made.map_err(|error| begin(&error))?;
    }
    let since = Instant::now();
    let guards = held::take(&clients, prefix, asked.held, &tally).await;
    seen.taken = guards.len() as u64;
    tell(&format!(
        "{} locks taken in {:.1?}",
        seen.taken,
        since.elapsed()
    ));
    let leaks = planted::from_the_beginning(asked, &places, &tally);
    loads(asked, server, &clients, &places, &tally, &mut seen, tell).await?;
    let leaks = planted::at_the_end(asked, node, prefix, leaks).await?;
    seen.still_held = held::give_back(guards, &tally).await;
    for place in places.counted() {
        let since = Instant::now();
        if let Err(error) = semaphore(&clients[0], place).delete().await {
            tally.failed(&error, since);
        }
    }
    tell("everything was given back");
    for locks in clients.iter() {
        seen.abandoned += locks.shutdown(CLOSED_WITHIN).await.abandoned as u64;
    }
    drop(clients);
    // A planted leak never goes away, so there is no need to wait long.
    let patience = if asked.leaks.is_empty() {
        GONE_WITHIN
    } else {
        PLANTED
    };
    seen.left = gone(node, patience).await?;
    seen.after = at_rest(seen.before, patience).await?;
    drop(leaks);
    count(&tally, &mut seen);
    Ok(seen)
}

fn semaphore(locks: &Locktopus, place: &Place) -> locktopus::Semaphore {
    match place.kind {
        Kind::Permits => locks.permit_semaphore(place.name.as_str()),
        _ => locks.semaphore(place.name.as_str()),
    }
}

fn count(tally: &Tally, seen: &mut Seen) {
    seen.granted = tally.granted.load(Ordering::Relaxed);
    seen.in_time = tally.in_time.load(Ordering::Relaxed);
    seen.skipped = tally.skipped.load(Ordering::Relaxed);
    seen.overlaps = tally.overlaps.load(Ordering::Relaxed);
    seen.excused = tally.excused.load(Ordering::Relaxed);
    seen.error_count = tally.errors.load(Ordering::Relaxed);
    seen.errors = tally.examples();
    seen.waits_us = tally.waits();
}

/// The stream, the crowds, the restarts and the readings of memory, in parallel until the stream
/// ends.
async fn loads(
    asked: &Asked,
    server: &Deployment,
    clients: &Arc<[Locktopus]>,
    places: &Arc<Places>,
    tally: &Arc<Tally>,
    seen: &mut Seen,
    tell: &(impl Fn(&str) + Send + Sync),
) -> Result<(), SoakError> {
    let (stop, stopped) = watch::channel(false);
    let every = if asked.plants(Leak::Rate) { 2 } else { 1 };
    // A crowd for each restart, and at least two.
    let gather = (asked.lasts / 4).min(GATHERS);
    let crowds = crowd::rounds(
        Arc::clone(clients),
        "soak",
        asked.waiters,
        gather,
        asked.plants(Leak::Crowd),
        Arc::clone(tally),
        stopped.clone(),
    );
    let streaming = async {
        stream::run(clients, places, tally, asked.rate, asked.lasts, every).await;
        // This fails only if all receivers have ended.
        let _ = stop.send(true);
    };
    let (reading, news) = (readings(stopped), news(tally, tell, stop.subscribe()));
    let restarting = restarts(asked, server, tally);
    let ((), crowds, restarted, memory, ()) =
        tokio::join!(streaming, crowds, restarting, reading, news);
    (seen.restarts, seen.longest_restart_ms) = restarted?;
    seen.crowds = crowds;
    seen.memory = memory?;
    Ok(())
}

/// Restarts the server as often as asked, evenly over the time; returns how often, and the longest
/// restart in milliseconds.
async fn restarts(
    asked: &Asked,
    server: &Deployment,
    tally: &Tally,
) -> Result<(u32, u64), TopologyError> {
    let begun = Instant::now();
    let node = &server.nodes()[0];
    let (mut done, mut longest) = (0, 0);
    let wanted = asked
        .restarts
        .saturating_sub(u32::from(asked.plants(Leak::Restart)));
    for number in 0..wanted {
        let at = asked.lasts * (number + 1) / (asked.restarts + 1);
        tokio::time::sleep_until((begun + at).into()).await;
        tally.outages.begin();
        let since = Instant::now();
        if number % 2 == 0 {
            node.crash().await?;
            node.start().await?;
        } else {
            node.restart(SHUT_DOWN_WITHIN).await?;
        }
        server.wait_ready().await?;
        tally.outages.end();
        done += 1;
        longest = longest.max(u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX));
    }
    Ok((done, longest))
}

/// Resident memory over time, until told to stop.
async fn readings(mut stop: watch::Receiver<bool>) -> std::io::Result<Vec<(f64, f64)>> {
    let begun = Instant::now();
    let mut memory = Vec::new();
    while !is_told(&mut stop, READING).await {
        memory.push((begun.elapsed().as_secs_f64(), Own::now()?.memory as f64));
    }
    Ok(memory)
}

async fn news(
    tally: &Tally,
    tell: &(impl Fn(&str) + Send + Sync),
    mut stop: watch::Receiver<bool>,
) {
    let mut before = 0;
    while !is_told(&mut stop, NEWS).await {
        let granted = tally.granted.load(Ordering::Relaxed);
        let under_way = tally.begun.load(Ordering::Relaxed) - tally.ended.load(Ordering::Relaxed);
        let wrong = tally.errors.load(Ordering::Relaxed);
        let rate = (granted - before) as f64 / NEWS.as_secs_f64();
        tell(&format!(
            "{rate:.0} granted per second, {under_way} under way, {wrong} errors"
        ));
        before = granted;
    }
}

/// Waits for `span`, or until the stop signal; returns whether it came.
async fn is_told(stop: &mut watch::Receiver<bool>, span: Duration) -> bool {
    let told = tokio::time::timeout(span, stop.wait_for(|stop| *stop));
    told.await.is_ok()
}

/// The server's state once everything that expires is gone.
async fn gone(node: &Node, patience: Duration) -> Result<Left, TopologyError> {
    let begun = Instant::now();
    loop {
        let left = witness::look(node).await?;
        if left.is_nothing() || begun.elapsed() > patience {
            return Ok(left);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// This process's state once all its tasks have ended.
async fn at_rest(before: Own, patience: Duration) -> std::io::Result<Own> {
    let begun = Instant::now();
    loop {
        let now = Own::now()?;
        let is_back = now.files <= before.files && now.tasks <= before.tasks;
        if is_back || begun.elapsed() > patience {
            return Ok(now);
        }
        tokio::time::sleep(LOOK).await;
    }
}
