//! Signals to this process, for commands that clean up before they exit.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};

use crate::exit::Exit;
use crate::failure::Failure;

/// The signals to catch. `KILL` and `STOP` cannot be caught.
const HEARD: [Signal; 9] = [
    Signal::INT,
    Signal::TERM,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::WINCH,
    Signal::CONT,
    Signal::TSTP,
];

/// A listener for these signals.
#[derive(Debug)]
pub(in crate::commands) struct Signals {
    heard: Vec<(Signal, unix::Signal)>,
    /// The last one that asked this process to end.
    ended: Option<Signal>,
}

impl Signals {
    /// Starts listening. Ignored signals, as under `nohup`, stay ignored, also by the program.
    pub(in crate::commands) fn new() -> Result<Self, Failure> {
        let ignored = ignored();
        let heard = HEARD
            .into_iter()
            .filter(|signal| ignored >> (signal.as_raw() - 1) & 1 == 0)
            .map(|signal| {
                let kind = SignalKind::from_raw(signal.as_raw());
                Ok((signal, unix::signal(kind)?))
            });
        let heard = heard.collect::<io::Result<_>>().map_err(|error| {
            Failure::new(Exit::Failed, format!("cannot listen for signals: {error}"))
        })?;
        Ok(Self { heard, ended: None })
    }

    /// Returns the next signal.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub(in crate::commands) async fn next(&mut self) -> Signal {
        poll_fn(|context| {
            for (signal, stream) in &mut self.heard {
                if let Poll::Ready(Some(())) = stream.poll_recv(context) {
                    self.ended = Some(*signal).filter(|signal| ends(*signal)).or(self.ended);
                    return Poll::Ready(*signal);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// The last one that asked this process to end, if one did.
    pub(in crate::commands) fn ended(&self) -> Option<Signal> {
        self.ended
    }

    /// Returns the next signal that asks this process to end.
    pub(in crate::commands) async fn next_that_ends(&mut self) -> Signal {
        loop {
            let signal = self.next().await;
            if ends(signal) {
                return signal;
            }
        }
    }
}

/// Whether a signal asks a process to end.
pub(in crate::commands) fn ends(signal: Signal) -> bool {
    [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT].contains(&signal)
}

/// The signals that this process was started to ignore, as a bit mask. Zero if unknown.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or_default()
}
