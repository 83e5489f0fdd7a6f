//! Pauses with a precision of some microseconds.

#[cfg(target_os = "linux")]
pub use kernel::Pause;
#[cfg(not(target_os = "linux"))]
pub use runtime::Pause;

#[cfg(target_os = "linux")]
mod kernel {
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::unix::AsyncFd;

    /// A kernel timer, because the runtime's timer has steps of a millisecond, which is several
    /// hand-offs.
    #[derive(Debug)]
    pub struct Pause {
        timer: AsyncFd<OwnedFd>,
    }

    impl Pause {
        /// A timer that is not running.
        ///
        /// # Errors
        ///
        /// The kernel's error, if no file descriptor is left.
        ///
        /// # Panics
        ///
        /// Outside a tokio runtime with I/O.
        #[allow(
            deprecated,
            reason = "the replacement is unsafe; what it asks for, a descriptor that stays open, holds for an `OwnedFd`"
        )]
        pub fn new() -> std::io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            Ok(Self {
                timer: AsyncFd::new(timer)?,
            })
        }

        /// Completes after `length`, at once if it is zero.
        ///
        /// # Errors
        ///
        /// The kernel's error about the timer, or an error that `length` is too long for it.
        ///
        /// # Cancel safety
        ///
        /// Cancel safe: the next pause resets the timer.
        pub async fn wait(&self, length: Duration) -> std::io::Result<()> {
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
}

/// On systems without such timers, pauses are as precise as the runtime's.
#[cfg(not(target_os = "linux"))]
mod runtime {
    use std::time::Duration;

    /// A timer of the runtime.
    #[derive(Debug)]
    pub struct Pause;

    impl Pause {
        /// A timer that is not running.
        ///
        /// # Errors
        ///
        /// None.
        pub const fn new() -> std::io::Result<Self> {
            Ok(Self)
        }

        /// Completes after `length`, at once if it is zero.
        ///
        /// # Errors
        ///
        /// None.
        pub async fn wait(&self, length: Duration) -> std::io::Result<()> {
            tokio::time::sleep(length).await;
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[tokio::test]
    async fn a_pause_is_never_too_short_and_can_be_repeated() {
        let pause = Pause::new().unwrap();
        for length in [
            Duration::ZERO,
            Duration::from_micros(200),
            Duration::from_millis(2),
        ] {
            let start = Instant::now();
            pause.wait(length).await.unwrap();
            assert!(start.elapsed() >= length, "{length:?}");
        }
    }
}
