//! Runs a watch: polls the servers, judges the history piece by piece, prints lines.

use std::sync::Arc;
use std::time::Duration;

use locktopus::{Locktopus, SafetyMode};
use locktopus_history::Record;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};

use super::histories::{Part, Pieces};
use super::incidents::{Incident, Incidents, Sign};
use super::load::Load;
use super::polls::{KnownPrimaries, Poll};
use super::report::{self, Fault, Line, Progress, Started, Summary, millis};
use super::tally::Tally;
use super::watch::WatchArgs;
use crate::commands::Context;
use crate::exit::Exit;
use crate::failure::Failure;

/// Pause between two polls of the servers.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Minimum length of a piece of the history.
const PIECE_NS: u64 = 15_000_000_000;
/// Our locks must vanish from the servers within this time after the last lease.
const TIDY: Duration = Duration::from_secs(10);

/// One watch.
pub(super) struct Watch<'a> {
    args: &'a WatchArgs,
    context: &'a Context,
    observer: Locktopus,
    load: Arc<Load>,
    pieces: Option<Pieces>,
    known: KnownPrimaries,
    incidents: Incidents,
    /// How many faults were reported as over.
    told: usize,
    tally: Tally,
    began_ns: u64,
    started: Instant,
    before: Totals,
}

/// The totals at the previous line.
#[derive(Default)]
struct Totals {
    after: Duration,
    grants: u64,
    errors: u64,
    lost: u64,
}

impl<'a> Watch<'a> {
    pub(super) fn new(
        args: &'a WatchArgs,
        context: &'a Context,
        observer: Locktopus,
        prefix: &str,
    ) -> Self {
        let names = usize::from(args.names);
        let pieces = Pieces::new(names);
        let load = Load::new(
            (1..=names)
                .map(|number| format!("{prefix}{number}"))
                .collect(),
            args.lease,
            args.hold,
            pieces.book(),
        );
        Self {
            args,
            context,
            observer,
            began_ns: load.now_ns(),
            load: Arc::new(load),
            pieces: Some(pieces),
            known: KnownPrimaries::default(),
            incidents: Incidents::default(),
            told: 0,
            tally: Tally::default(),
            started: Instant::now(),
            before: Totals::default(),
        }
    }

    /// Watches until the time is over, or Ctrl-C.
    pub(super) async fn run(mut self, instances: &[Locktopus]) -> Result<Self, Failure> {
        // Created once: a new listener in each iteration would miss signals that come between two.
        let mut interrupts = signal(SignalKind::interrupt()).map_err(|error| failed(&error))?;
        let (send, mut polls) = mpsc::channel(1);
        let polling = tokio::spawn(poll(self.observer.clone(), Arc::clone(&self.load), send));
        let first = polls.recv().await;
        self.begin(first.as_ref(), instances.len())?;
        let mut workers = self.load.start(instances);
        let end = self.args.time.map(|time| self.started + time);
        let mut lines = interval(self.args.interval);
        lines.set_missed_tick_behavior(MissedTickBehavior::Delay);
        lines.tick().await;
        loop {
            tokio::select! {
                Some(poll) = polls.recv() => self.take(&poll).await?,
                _ = lines.tick() => self.progress()?,
                Some(ended) = workers.join_next() => return Err(ended_early(ended)),
                () = sleep_until(end.unwrap_or_else(Instant::now)), if end.is_some() => break,
                _ = interrupts.recv() => break,
            }
        }
        self.load.stop.cancel();
        self.finish(&mut workers).await?;
        // The last poll, so that the last piece includes later answers.
        if let Some(poll) = polls.recv().await {
            self.take(&poll).await?;
        }
        polling.abort();
        self.incidents.end();
        if let Some(pieces) = self.pieces.take() {
            self.judge(pieces.rest().map_err(|error| failed(&error))?)
                .await?;
        }
        Ok(self)
    }

    fn begin(&mut self, first: Option<&Poll>, connections: usize) -> Result<(), Failure> {
        if let Some(poll) = first
            && let Some((_, problem)) = self.known.compare(poll)
        {
            return Err(Failure::new(Exit::Unavailable, problem));
        }
        if !self.known.tells_restarts() {
            let problem = "this user may not run INFO, so restarts look like pauses";
            self.context.out.say(problem);
        }
        let names = &self.load.names;
        let started = Started {
            safety: self.observer.backend().safety.to_string(),
            primaries: self.known.primaries().map(str::to_owned).collect(),
            prefix: names[0].trim_end_matches('1').to_owned(),
            names: names.len(),
            workers: names.len() * connections,
        };
        self.context
            .out
            .answer(&Line::Started(started), report::text)
    }

    /// Takes in a poll of the servers, and the workers' errors since the last one.
    async fn take(&mut self, poll: &Poll) -> Result<(), Failure> {
        let well_ns = self.known.well_ns;
        let now = self.load.now_ns();
        let troubles = self.load.troubles();
        let sign = self.known.compare(poll);
        let well = sign.is_none();
        let mut signs = Vec::from_iter(sign.map(|(sign, target)| (sign, target, well_ns)));
        // The first error says enough.
        signs.extend(troubles.into_iter().take(1).map(|(since, text)| {
            (
                Sign::Connection,
                text,
                since.min(well_ns.max(self.began_ns)),
            )
        }));
        for (sign, target, well_ns) in signs {
            let after = self.started.elapsed();
            if self.incidents.sign(sign, target, well_ns, now)
                && let Some(incident) = self.incidents.open()
            {
                let fault = Fault::seen(incident, after);
                self.context.out.answer(&Line::Fault(fault), report::text)?;
            }
        }
        if well {
            self.incidents.well(now, self.load.all_granted_ns());
        }
        if self.incidents.open().is_some() {
            return Ok(());
        }
        let Some(pieces) = &mut self.pieces else {
            return Ok(());
        };
        // Right after a fault, to report its effect; otherwise from time to time.
        let waiting = self.incidents.all().len() > self.told;
        let by_ns = if waiting {
            now
        } else {
            now.saturating_sub(PIECE_NS)
        };
        if let Some(part) = pieces
            .ended(poll.began_ns, now)
            .map_err(|error| failed(&error))?
        {
            self.judge(part).await?;
        } else {
            pieces.turn(by_ns, now);
        }
        Ok(())
    }

    async fn judge(&mut self, part: Part) -> Result<(), Failure> {
        let faults: Vec<Record> = self.incidents.all().iter().map(Incident::record).collect();
        let forgetful = self
            .incidents
            .all()
            .iter()
            .any(|incident| incident.sign.may_forget() && incident.at_ns >= part.began_ns);
        let exclusive = self.observer.backend().safety.survives_failover() || !forgetful;
        let ended_ns = part.ended_ns;
        let load = Arc::clone(&self.load);
        let judging = move || part.judge(&faults, exclusive, |worker| load.is_brief(worker));
        let judged = tokio::task::spawn_blocking(judging).await;
        let judged = judged.map_err(|error| failed(&error))?;
        self.tally.add(&judged, exclusive);
        let over = self.incidents.all()[self.told..].iter();
        for incident in over.take_while(|incident| incident.is_over_by(ended_ns)) {
            self.told += 1;
            let effect = self.tally.effect(incident);
            let fault = Fault::over(incident, self.started.elapsed(), effect);
            self.context.out.answer(&Line::Fault(fault), report::text)?;
        }
        Ok(())
    }

    fn progress(&mut self) -> Result<(), Failure> {
        let now = Totals {
            after: self.started.elapsed(),
            grants: self.load.granted(),
            errors: self.load.errors(),
            lost: self.load.lost(),
        };
        let before = std::mem::replace(&mut self.before, now);
        let now = &self.before;
        let span = now.after.saturating_sub(before.after).as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a rate of some hundreds")]
        let grants = (now.grants - before.grants) as f64;
        let line = Progress {
            after_ms: millis(now.after),
            grants_per_second: grants / span.max(f64::MIN_POSITIVE),
            errors: now.errors - before.errors,
            lost: now.lost - before.lost,
            longest_gap_ms: millis(self.load.longest_gap()),
            faults: self.incidents.all().len(),
            double_grants: self.tally.double_grants,
            tokens_out_of_order: self.tally.tokens_out_of_order,
            stale_writes: self.tally.stale_writes_accepted,
        };
        self.context.out.answer(&Line::Progress(line), report::text)
    }

    /// Waits for the workers to release their locks.
    async fn finish(&self, workers: &mut JoinSet<Result<(), Failure>>) -> Result<(), Failure> {
        while let Some(ended) = workers.join_next().await {
            ended.map_err(|error| failed(&error))??;
        }
        Ok(())
    }

    pub(super) async fn summary(self) -> Summary {
        let incidents = self.incidents.all();
        let over = |incident: &Incident| {
            let began = Duration::from_nanos(incident.at_ns.saturating_sub(self.began_ns));
            Fault::over(incident, began, self.tally.effect(incident))
        };
        let mut failures = self.tally.broken.clone();
        let took_ms = millis(self.started.elapsed());
        failures.extend(self.left().await);
        let (grants, seen) = (self.load.granted(), incidents.len());
        if grants == 0 {
            failures.push("no lock was granted, so nothing was tested".to_owned());
        }
        if seen < self.args.faults {
            let wanted = self.args.faults;
            failures.push(format!("{seen} faults were seen, not {wanted}"));
        }
        Summary {
            took_ms,
            safety: self.observer.backend().safety.to_string(),
            grants,
            errors: self.load.errors(),
            lost: self.load.lost(),
            rates: self.tally.rows(incidents),
            faults: incidents.iter().map(over).collect(),
            tally: self.tally,
            failed: failures,
        }
    }

    /// Finds locks and waiters that are left after every lease has ended.
    async fn left(&self) -> Option<String> {
        let end = Instant::now() + self.args.lease + TIDY;
        'names: for name in &self.load.names {
            loop {
                let quorum = self.observer.backend().safety == SafetyMode::Quorum;
                let request = if quorum {
                    self.observer.mutex(name.as_str())
                } else {
                    self.observer.lock(name.as_str())
                };
                let problem = match request.inspect().await {
                    Ok(state) if state.holders.is_empty() && state.waiters.is_empty() => {
                        continue 'names;
                    }
                    Ok(_) => format!("{name} still has a holder or a waiter"),
                    Err(error) => format!("cannot check for leftover locks: {error}"),
                };
                if Instant::now() >= end {
                    return Some(problem);
                }
                sleep(POLL_INTERVAL).await;
            }
        }
        None
    }
}

/// Polls the servers until the receiver is gone.
async fn poll(locks: Locktopus, load: Arc<Load>, polls: mpsc::Sender<Poll>) {
    loop {
        let began_ns = load.now_ns();
        let answer = locks.diagnose().await.map_err(|error| error.to_string());
        if polls.send(Poll { began_ns, answer }).await.is_err() {
            return;
        }
        sleep(POLL_INTERVAL).await;
    }
}

fn ended_early(ended: Result<Result<(), Failure>, tokio::task::JoinError>) -> Failure {
    match ended {
        Ok(Err(failure)) => failure,
        Ok(Ok(())) => Failure::new(Exit::Failed, "a worker stopped early"),
        Err(error) => failed(&error),
    }
}

fn failed(error: &dyn std::error::Error) -> Failure {
    Failure::new(Exit::Failed, error.to_string())
}
