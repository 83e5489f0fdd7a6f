//! Watches the program until it ends, and ends it if the lock is lost.

use std::future::pending;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use locktopus::{Lease, LostCause};
use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};
use tokio::time::{Instant, sleep, sleep_until};

use super::grace::Grace;
use super::group::Program;
use super::terminal::{self, Terminal};
use crate::commands::signals::{Signals, ends};
use crate::failure::spell;
use crate::output::Output;

/// Extra time for the group to vanish after `KILL` on a slow machine.
const SLOW: Duration = Duration::from_secs(2);

/// How a program ended.
#[derive(Debug)]
pub(in crate::commands) enum Ended {
    /// On its own, with this exit code.
    Itself(u8),
    /// Stopped, because the lock was lost.
    Stopped { why: String, how: &'static str },
}

/// How often to check whether the terminal is free. No signal reports that.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// How long a program waits for the terminal before a message says so. Until then a shell may be
/// bringing it to the foreground, or a `run` inside it may be giving the terminal back.
const SILENT_WAIT: Duration = Duration::from_secs(1);

const NOT_SUSPENDED: &str = "not suspended: the lock would stay held";

/// The end of the watch.
enum Event {
    Ended(ExitStatus),
    Lost(String),
}

/// Passes signals on until the program ends. Ends it in time if the lock is lost.
pub(super) async fn supervise(
    program: &mut Program,
    name: &str,
    lease: &Lease,
    grace: Grace,
    max_hold: Option<Duration>,
    signals: &mut Signals,
    out: Output,
) -> io::Result<Ended> {
    let mut stops = Stops::new(out)?;
    let watched = watch(program, name, lease, grace, max_hold, signals, &mut stops);
    let ended = watched.await?;
    match ended {
        Event::Ended(status) => {
            if status.signal().is_none() {
                stops.terminal.keep_mode();
            }
            if !program.is_gone() && !ends_too(program, lease, grace, signals).await? {
                out.say(
                    "the program left processes running; ending them before the lock is released",
                );
                stop(program, lease, grace).await?;
            }
            Ok(Ended::Itself(code_of(status)))
        }
        Event::Lost(why) => {
            let how = stop(program, lease, grace).await?;
            Ok(Ended::Stopped { why, how })
        }
    }
}

async fn watch(
    program: &mut Program,
    name: &str,
    lease: &Lease,
    grace: Grace,
    max_hold: Option<Duration>,
    signals: &mut Signals,
    stops: &mut Stops,
) -> io::Result<Event> {
    loop {
        stops.attend(program);
        // Each renewal moves this deadline. Act only when the rest of the lease is just enough to
        // end the program.
        let latest = before(lease.valid_until(), grace.needed());
        tokio::select! {
            biased;
            cause = lease.lost() => return Ok(Event::Lost(lost(name, &cause))),
            () = sleep_until(latest) => {
                if before(lease.valid_until(), grace.needed()) <= Instant::now() {
                    return Ok(Event::Lost(running_out(name, lease, grace, max_hold)));
                }
            }
            status = program.wait() => return Ok(Event::Ended(status?)),
            signal = signals.next() => pass_on(program, signal, stops.out),
            () = stops.next() => {}
        }
    }
}

/// Says that a lock was lost, and why.
pub(super) fn lost(name: &str, cause: &LostCause) -> String {
    format!("lock {name:?} is lost: {cause}")
}

fn running_out(name: &str, lease: &Lease, grace: Grace, max_hold: Option<Duration>) -> String {
    let held = lease.held_for() + grace.needed() + Grace::killing();
    match max_hold {
        Some(hold) if held >= hold => {
            let hold = spell(hold);
            format!("lock {name:?} has almost reached its time limit of {hold}")
        }
        _ => not_renewed(name, lease.remaining()),
    }
}

/// `left` is zero if this process was suspended, for example.
fn not_renewed(name: &str, left: Duration) -> String {
    match left {
        Duration::ZERO => format!("lock {name:?} is lost: its lease ended before it was renewed"),
        _ => format!("lock {name:?} could not be renewed in time: its lease had {left:.1?} left"),
    }
}

fn pass_on(program: &Program, signal: Signal, out: Output) {
    let from_terminal = [Signal::INT, Signal::QUIT].contains(&signal);
    if signal == Signal::TSTP {
        out.say(NOT_SUSPENDED);
    } else if program.group().whole || !from_terminal {
        // In the foreground the terminal signals the program itself.
        program.send(signal);
        if ends(signal) {
            // A stopped program gets no other signal.
            program.send(Signal::CONT);
        }
    }
}

/// Handles a program that the terminal stopped. Its lock is renewed meanwhile.
struct Stops {
    terminal: Terminal,
    /// The program, or one inside it, is stopped until it gets the terminal.
    wants_terminal: bool,
    waits_since: Option<Instant>,
    told: bool,
    children: unix::Signal,
    /// A `run` inside the program wants the terminal.
    asked: unix::Signal,
    out: Output,
}

impl Stops {
    fn new(out: Output) -> io::Result<Self> {
        Ok(Self {
            terminal: Terminal::default(),
            wants_terminal: false,
            waits_since: None,
            told: false,
            children: unix::signal(SignalKind::child())?,
            asked: unix::signal(SignalKind::from_raw(Signal::TTIN.as_raw()))?,
            out,
        })
    }

    /// Waits until it is time to check again.
    async fn next(&mut self) {
        let pause = async {
            if self.wants_terminal {
                sleep(POLL_INTERVAL).await;
            } else {
                pending().await
            }
        };
        tokio::select! {
            _ = self.children.recv() => {}
            _ = self.asked.recv() => self.wants_terminal = true,
            () = pause => {}
        }
    }

    /// Continues the program if the terminal stopped it. A `STOP` signal is left alone.
    fn attend(&mut self, program: &Program) {
        let group = program.group();
        match program.stopped_by() {
            Some(Signal::TTIN | Signal::TTOU) if group.whole => self.wants_terminal = true,
            Some(Signal::TSTP) => {
                if group.whole {
                    self.out.say(NOT_SUSPENDED);
                }
                program.send(Signal::CONT);
            }
            _ => {}
        }
        if !self.wants_terminal {
            return;
        }
        if self.terminal.give(group.pid) {
            (self.wants_terminal, self.waits_since) = (false, None);
            program.send(Signal::CONT);
            return;
        }
        let since = *self.waits_since.get_or_insert_with(Instant::now);
        if !terminal::ask() && !self.told && since.elapsed() >= SILENT_WAIT {
            self.told = true;
            self.out.say(
                "the program is stopped because it wants the terminal, which another process has; \
                 bring it to the foreground, or end it",
            );
        }
    }
}

/// Whether the rest of the program ends by the signal that ended the program.
async fn ends_too(
    program: &mut Program,
    lease: &Lease,
    grace: Grace,
    signals: &Signals,
) -> io::Result<bool> {
    if !program.group().whole || signals.ended().is_none() {
        return Ok(false);
    }
    let latest = before(lease.valid_until(), grace.needed());
    program
        .gone_by(latest.min(Instant::now() + grace.polite))
        .await
}

/// Ends the program before the lease ends. Returns how.
async fn stop(program: &mut Program, lease: &Lease, grace: Grace) -> io::Result<&'static str> {
    let polite = Instant::now() + grace.polite;
    let kill = polite.min(before(lease.valid_until(), Grace::killing()));
    program.send(Signal::TERM);
    // A stopped program gets no other signal.
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

/// An instant earlier by `time`, or now if that cannot be represented.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_ended_is_not_about_to_end() {
        assert!(!not_renewed("a", Duration::ZERO).contains("0.0"));
        assert!(not_renewed("a", Duration::from_millis(1_500)).contains("had 1.5s left"));
    }
}
