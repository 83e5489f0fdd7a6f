//! Pauses that are exact to some microseconds.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// A timer of the kernel: the runtime's own has steps of a millisecond, which is several hand-offs.
#[derive(Debug)]
pub(super) struct Pause {
    timer: AsyncFd<OwnedFd>,
}

impl Pause {
    #[allow(
        deprecated,
        reason = "the replacement is unsafe; what it asks for, a descriptor that stays open, holds for an `OwnedFd`"
    )]
    pub(super) fn new() -> std::io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self {
            timer: AsyncFd::new(timer)?,
        })
    }

    /// Completes after `length`, at once if it is zero.
    pub(super) async fn wait(&self, length: Duration) -> std::io::Result<()> {
        if length.is_zero() {
            return Ok(());
        }
        let once = Itimerspec {
            it_interval: Timespec::default(),
            it_value: Timespec::try_from(length).map_err(std::io::Error::other)?,
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        loop {
            let mut ready = self.timer.readable().await?;
            let mut expirations = [0; 8];
            let read = ready.try_io(|timer| Ok(rustix::io::read(timer, &mut expirations)?));
            if let Ok(read) = read {
                return read.map(drop);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::worker::monotonic_ns;

    #[tokio::test]
    async fn a_pause_is_never_too_short_and_can_be_repeated() {
        let pause = Pause::new().unwrap();
        for length in [
            Duration::ZERO,
            Duration::from_micros(200),
            Duration::from_millis(2),
        ] {
            let start = monotonic_ns();
            pause.wait(length).await.unwrap();
            assert!(
                u128::from(monotonic_ns() - start) >= length.as_nanos(),
                "{length:?}"
            );
        }
    }
}
