//! Until the program ends, or has to.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use locktopus::LockGuard;
use rustix::process::Signal;
use tokio::time::{Instant, sleep_until};

use super::grace::Grace;
use super::group::Program;
use super::signals::Signals;
use crate::output::Output;

/// How long the group may take to vanish after `KILL`, beyond what was planned: a machine may be slow.
const SLOW: Duration = Duration::from_secs(2);

/// How a program ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// By itself, with this status.
    Itself(u8),
    /// Because it lost the lock.
    Stopped { why: String, how: &'static str },
}

/// Why a program has to end.
enum Event {
    Ended(ExitStatus),
    Lost(String),
}

/// Passes signals on until the program ends, and ends it in time if the lock does.
pub(super) async fn supervise(
    program: &mut Program,
    guard: &LockGuard,
    grace: Grace,
    max_hold: Option<Duration>,
    signals: &mut Signals,
    out: Output,
) -> io::Result<Ended> {
    match watch(program, guard, grace, max_hold, signals, out).await? {
        Event::Ended(status) => {
            if !program.is_gone() {
                out.say("the program left processes running; they are ended before its lock is given back");
                stop(program, guard, grace).await?;
            }
            Ok(Ended::Itself(code_of(status)))
        }
        Event::Lost(why) => {
            let how = stop(program, guard, grace).await?;
            Ok(Ended::Stopped { why, how })
        }
    }
}

async fn watch(
    program: &mut Program,
    guard: &LockGuard,
    grace: Grace,
    max_hold: Option<Duration>,
    signals: &mut Signals,
    out: Output,
) -> io::Result<Event> {
    loop {
        // Renewal moves it. Nothing is done about a lease that is not renewed until ending the program takes what is left.
        let latest = before(guard.valid_until(), grace.needed());
        tokio::select! {
            biased;
            cause = guard.lost() => return Ok(Event::Lost(format!("the lock is lost: {cause}"))),
            () = sleep_until(latest) => {
                if before(guard.valid_until(), grace.needed()) <= Instant::now() {
                    return Ok(Event::Lost(running_out(guard, grace, max_hold)));
                }
            }
            status = program.wait() => return Ok(Event::Ended(status?)),
            signal = signals.next() => pass_on(program, signal, out),
        }
    }
}

fn running_out(guard: &LockGuard, grace: Grace, max_hold: Option<Duration>) -> String {
    let held = guard.lease().held_for() + grace.needed() + Grace::killing();
    match max_hold {
        Some(hold) if held >= hold => {
            format!("the lock has been held for almost {hold:?}, which is all it may")
        }
        _ => format!(
            "the lock is lost in {:.1?}: it could not be renewed in time",
            guard.remaining()
        ),
    }
}

fn pass_on(program: &Program, signal: Signal, out: Output) {
    let from_terminal = [Signal::INT, Signal::QUIT].contains(&signal);
    if signal == Signal::TSTP {
        out.say("not suspended: nobody would renew the lock");
    } else if program.group().whole || !from_terminal {
        // In the foreground the terminal tells the program itself.
        program.send(signal);
    }
}

/// Ends the program while the lease lasts. Says what it took.
async fn stop(program: &mut Program, guard: &LockGuard, grace: Grace) -> io::Result<&'static str> {
    let polite = Instant::now() + grace.polite;
    let kill = polite.min(before(guard.valid_until(), Grace::killing()));
    program.send(Signal::TERM);
    // What is stopped hears nothing else.
    program.send(Signal::CONT);
    if program.gone_by(kill).await? {
        return Ok("TERM");
    }
    program.send(Signal::KILL);
    if program
        .gone_by(Instant::now() + Grace::killing() + SLOW)
        .await?
    {
        return Ok("KILL");
    }
    Ok("KILL, but a process of its group is still there")
}

/// An instant earlier by so much, or now if there is no such.
fn before(instant: Instant, time: Duration) -> Instant {
    instant.checked_sub(time).unwrap_or_else(Instant::now)
}

fn code_of(status: ExitStatus) -> u8 {
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => signal.saturating_add(128),
        (None, None) => 1,
    };
    u8::try_from(code).unwrap_or(u8::MAX)
}
