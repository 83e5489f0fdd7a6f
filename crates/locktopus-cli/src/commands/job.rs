//! `job`: a program at fixed times, on one of many machines.

use std::ffi::OsString;
use std::time::{Duration, SystemTime};

use clap::{ArgGroup, Args};
use humantime::format_rfc3339_seconds;
use jiff::Timestamp;
use locktopus::url::parse_duration;
use locktopus::{CatchUp, Job, LockError, Locktopus, MissedRuns, OptionError, ScheduledJob, Tick};
use rustix::process::Signal;
use tokio::sync::{mpsc, oneshot};

use super::Context;
use super::run::{Ended, Grace, RunArgs, supervised};
use super::signals::Signals;
use crate::exit::of_signal;
use crate::failure::Failure;
use crate::locks::{LabelArgs, NameArg, close, connect_as};

/// Run a program at fixed times, on one machine of many
///
/// Start this on every machine, with the same name and times. Each time, one machine runs the
/// program as run would: with LOCKTOPUS_TOKEN, and stopped in time if the lock is lost.
/// LOCKTOPUS_SCHEDULED_AT is the time it was due. Each run begins at most once. If its machine dies
/// in the middle, the run is not repeated. The command goes on until a signal ends it. At the start
/// it says when it is due next.
///
/// A run that no machine has begun may still begin late: by up to half the time until the next one,
/// at most 1m. So a run that was due just before the start begins at once. After that it is missed;
/// the command says how many were missed, and since when.
#[derive(Args, Debug)]
#[command(group(ArgGroup::new("times").required(true).args(["cron", "every"])))]
pub(crate) struct JobArgs {
    #[command(flatten)]
    name: NameArg,

    /// The times as a cron expression: minute, hour, day of the month, month, day of the week.
    /// "0 3 * * MON-FRI" is 03:00 on working days. Also @hourly, @daily, @weekly
    #[arg(long, value_name = "EXPRESSION")]
    cron: Option<String>,

    /// The time zone of --cron by its IANA name, such as Europe/Berlin. If a clock change skips a
    /// time, the run comes right after the gap. A time that comes twice counts once
    #[arg(
        long,
        value_name = "ZONE",
        default_value = "UTC",
        conflicts_with = "every"
    )]
    zone: String,

    /// Run at every multiple of this time since 1970, UTC. With 15m, every quarter of an hour
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    every: Option<Duration>,

    /// If no machine did the last run in time, do it late
    #[arg(long)]
    catch_up: bool,

    /// Length of the lease, renewed after a third. After a machine dies in a run, nothing runs for
    /// at most this long. Default: that of the URL, else 30s
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    lease: Option<Duration>,

    /// End the program before its run has lasted this long
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    max_run: Option<Duration>,

    /// Time the program has to end after TERM before it gets KILL. See run
    #[arg(long, value_parser = parse_duration, value_name = "TIME")]
    grace: Option<Duration>,

    #[command(flatten)]
    label: LabelArgs,

    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// A run that is due here. It holds the job's mutex until `done`, or until that is dropped.
struct Due {
    tick: Tick,
    done: oneshot::Sender<()>,
}

impl JobArgs {
    fn schedule(&self, locks: &Locktopus, program: &RunArgs) -> Result<ScheduledJob, Failure> {
        let job = Job::new(locks, program.name.get());
        let mut job = match (&self.cron, self.every) {
            (Some(expression), _) => job.cron(expression, &self.zone).map_err(in_flags)?,
            (None, every) => job.every(every.unwrap_or_default()),
        };
        if self.catch_up {
            job = job.catch_up(CatchUp::Once);
        }
        if let Some(lease) = self.lease {
            job = job.renewed_lease(lease);
        }
        if let Some(most) = self.max_run {
            job = job.at_most(most);
        }
        Ok(job)
    }
}

/// The library names its options as this command does.
fn in_flags(error: OptionError) -> Failure {
    Failure::usage(format!("--{error}"))
}

pub(crate) async fn run(args: JobArgs, context: &Context) -> Result<u8, Failure> {
    let mut program = RunArgs::of_a_mutex(args.name.clone(), args.command.clone());
    program.lease = args.lease;
    (program.max_hold, program.max_hold_option) = (args.max_run, "--max-run");
    program.grace = args.grace;
    program.label = args.label.clone();
    let grace = program.checked_grace(context)?;
    let checked = match (&args.cron, args.every) {
        (Some(expression), _) => Job::check_cron(expression, &args.zone),
        (None, every) => Job::check_every(every.unwrap_or_default()),
    };
    checked.map_err(in_flags)?;
    let mut signals = Signals::new()?;
    let locks = connect_as(&context.config, program.label(context)?).await?;
    let mut job = args.schedule(&locks, &program)?;
    let (name, zone, out) = (
        program.name.get().to_owned(),
        args.zone.clone(),
        context.out,
    );
    job = job.on_missed(move |missed| out.say(&told(&name, &missed, &zone)));
    if let Some(next) = job.next_due().await.map_err(in_flags)? {
        let (name, next) = (program.name.get(), in_zone(next, &args.zone));
        context.out.say(&format!("{name:?} is due next at {next}"));
    }
    let done = runs(job, &program, &args.zone, grace, &mut signals, context).await;
    close(locks).await;
    done
}

/// A time as `2026-11-30 03:00:00 Europe/Berlin`.
fn in_zone(time: SystemTime, zone: &str) -> String {
    let there = Timestamp::try_from(time).and_then(|time| time.in_tz(zone));
    there.map_or_else(
        |_| format_rfc3339_seconds(time).to_string(),
        |there| format!("{} {zone}", there.strftime("%F %T")),
    )
}

fn told(name: &str, missed: &MissedRuns, zone: &str) -> String {
    let or_more = if missed.or_more { " or more" } else { "" };
    let runs = if missed.count == 1 { "run" } else { "runs" };
    format!(
        "{name:?} missed {}{or_more} {runs} since {}: no machine began them in time",
        missed.count,
        in_zone(missed.since, zone)
    )
}

/// Runs the program whenever it is due here, until a signal ends this process.
async fn runs(
    job: ScheduledJob,
    program: &RunArgs,
    zone: &str,
    grace: Grace,
    signals: &mut Signals,
    context: &Context,
) -> Result<u8, Failure> {
    let (say, mut hear) = mpsc::channel(1);
    // On a task of its own, which watches the lease while the program runs here.
    let mut schedule = tokio::spawn(job.run(move |tick| {
        let say = say.clone();
        async move {
            let (done, ended) = oneshot::channel();
            if say.send(Due { tick, done }).await.is_ok() {
                let _ = ended.await;
            }
        }
    }));
    loop {
        tokio::select! {
            ended = &mut schedule => match ended {
                Ok(Err(error)) => return Err(ended_by(error, program.name.get())),
                Ok(Ok(())) => return Ok(0),
                Err(panic) => std::panic::resume_unwind(panic.into_panic()),
            },
            Some(due) = hear.recv() => {
                if let Some(signal) = once(due, program, zone, grace, signals, context).await? {
                    schedule.abort();
                    return Ok(of_signal(signal));
                }
            }
            signal = signals.next_that_ends() => {
                schedule.abort();
                return Ok(of_signal(signal));
            }
        }
    }
}

/// The error that ended the job.
fn ended_by(error: LockError, name: &str) -> Failure {
    let other = error.other_kind().map(|other| other.found.clone());
    let mut failure = Failure::from(error);
    let why = match other {
        Some(found) => format!("its name is in use as {found}; give the job another name"),
        None => format!("{}; start it again once that is mended", failure.message),
    };
    failure.message = format!("job {name:?} has ended: {why}");
    failure
}

/// One run. The signal that was to end this process meanwhile, if there was one.
async fn once(
    due: Due,
    program: &RunArgs,
    zone: &str,
    grace: Grace,
    signals: &mut Signals,
    context: &Context,
) -> Result<Option<Signal>, Failure> {
    let at = due.tick.scheduled_at();
    let variables = [(
        "LOCKTOPUS_SCHEDULED_AT",
        format_rfc3339_seconds(at).to_string(),
    )];
    let at = in_zone(at, zone);
    let lease = due.tick.lease();
    let ended = supervised(program, context, lease, grace, signals, &variables).await;
    let _ = due.done.send(());
    let said = match ended {
        Ok(Ended::Itself(0)) => None,
        Ok(Ended::Itself(status)) => Some(format!("the run of {at} ended with {status}")),
        Ok(Ended::Stopped { why, how }) => Some(format!(
            "the run of {at}: {why}; the program was stopped with {how}"
        )),
        // It was there at the start, and may come back.
        Err(failure) if failure.is_no_start() => {
            Some(format!("the run of {at}: {}", failure.message))
        }
        Err(failure) => return Err(failure),
    };
    if let Some(said) = said {
        context.out.say(&said);
    }
    Ok(signals.ended())
}
