//! A thread that notices when this process was not run.
//!
//! It has two signs. Its own sleep took longer than asked, because the process or the machine was
//! stopped. Or the kernel counted that another thread of the process was ready and waited. A thread
//! that keeps itself busy for too long, like code that blocks an executor, shows neither sign.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use locktopus_history::Clock;

use super::kernel::{Counters, run_delays};
use super::machine::MachineStall;

/// Polling interval.
const PERIOD: Duration = Duration::from_millis(5);
/// Shorter gaps happen on every machine.
const SHORTEST_NS: u64 = 5_000_000;

/// Watches until asked for the result, or dropped.
#[derive(Debug)]
pub struct StallWatch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Gaps>>,
    clock: Clock,
    since: u64,
    before: Counters,
}

/// Which threads a watch checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looks {
    AtEveryThread,
    AtItself,
}

impl Looks {
    fn run_delays(self) -> HashMap<String, u64> {
        match self {
            Self::AtEveryThread => run_delays(),
            Self::AtItself => HashMap::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Gaps {
    count: u64,
    total_ns: u64,
    longest_ns: u64,
}

impl StallWatch {
    /// Starts watching. Calls `each` with the start and end of every stall, right after it.
    ///
    /// If no thread can be started, it notices no stalls, but still reports the kernel's counters.
    #[must_use]
    pub fn start(clock: Clock, each: impl FnMut(u64, u64) + Send + 'static) -> Self {
        Self::begin(clock, Looks::AtEveryThread, each)
    }

    /// Starts watching at little cost, for use beside a measurement: it notices only what stops the
    /// whole process or the machine.
    #[must_use]
    pub fn from_afar(clock: Clock) -> Self {
        Self::begin(clock, Looks::AtItself, |_, _| {})
    }

    fn begin(clock: Clock, looks: Looks, each: impl FnMut(u64, u64) + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let watching = Arc::clone(&stop);
        // Not when the thread starts: that may be late for the same reason.
        let since = clock.now_ns();
        let thread = std::thread::Builder::new()
            .name("stall-watch".to_owned())
            .spawn(move || watch(clock, since, looks, &watching, each));
        Self {
            stop,
            thread: thread.ok(),
            clock,
            since,
            before: Counters::now(),
        }
    }

    /// Ends, and returns what it saw.
    #[must_use]
    pub fn finish(mut self) -> MachineStall {
        self.stop.store(true, Ordering::Relaxed);
        let gaps = self.thread.take().and_then(|thread| thread.join().ok());
        let gaps = gaps.unwrap_or_default();
        let counted = Counters::now().since(self.before);
        MachineStall {
            watched_ns: self.clock.now_ns().saturating_sub(self.since),
            cpu_pressure_ns: counted.cpu_pressure_ns,
            memory_pressure_ns: counted.memory_pressure_ns,
            io_pressure_ns: counted.io_pressure_ns,
            steal_ns: counted.steal_ns,
            gaps: gaps.count,
            gaps_ns: gaps.total_ns,
            longest_gap_ns: gaps.longest_ns,
        }
    }
}

impl Drop for StallWatch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a thread of its own, which must not depend on an executor"
)]
fn watch(
    clock: Clock,
    since: u64,
    looks: Looks,
    stop: &AtomicBool,
    mut each: impl FnMut(u64, u64),
) -> Gaps {
    let period = u64::try_from(PERIOD.as_nanos()).unwrap_or(u64::MAX);
    let mut gaps = Gaps::default();
    let mut looked = since;
    let mut delays = looks.run_delays();
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(PERIOD);
        let now = clock.now_ns();
        let slept_too_long = now.saturating_sub(looked).saturating_sub(period);
        let delays_now = looks.run_delays();
        let waited = delays_now.iter().filter_map(|(thread, delay)| {
            let before = delays.get(thread)?;
            Some(delay.saturating_sub(*before))
        });
        let stalled = waited.max().unwrap_or(0).max(slept_too_long);
        if stalled >= SHORTEST_NS {
            each(now.saturating_sub(stalled), now);
            gaps.count += 1;
            gaps.total_ns = gaps.total_ns.saturating_add(stalled);
            gaps.longest_ns = gaps.longest_ns.max(stalled);
        }
        looked = now;
        delays = delays_now;
    }
    gaps
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::Mutex;
    use std::time::Instant;

    use rustix::process::{Pid, Signal, kill_process};

    use super::*;

    #[test]
    fn a_watch_that_is_told_to_ends() {
        let watch = StallWatch::start(Clock::new(), |_, _| {});
        let stall = watch.finish();
        assert!(stall.watched_ns > 0);
        #[cfg(target_os = "linux")]
        assert!(stall.steal_ns.is_some());
    }

    /// Runs the test program again as a process that is stopped; it prints what its watch sees.
    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "a test without an executor, of how long a process is stopped"
    )]
    fn a_process_that_is_stopped_notices_afterwards() {
        const TOLD: &str = "LOCKTOPUS_STALL_WATCH";
        if std::env::var_os(TOLD).is_some() {
            let seen: Arc<Mutex<Vec<u64>>> = Arc::default();
            let list = Arc::clone(&seen);
            let _watch = StallWatch::start(Clock::new(), move |from, until| {
                list.lock().unwrap().push(until - from);
            });
            println!("ready");
            let end = Instant::now() + Duration::from_secs(60);
            // Longer than any gap of a machine that is merely busy.
            let long = |ns: &u64| *ns >= 400_000_000;
            while !seen.lock().unwrap().iter().any(long) && Instant::now() < end {
                std::thread::sleep(PERIOD);
            }
            assert!(seen.lock().unwrap().iter().any(long), "it noticed nothing");
            return;
        }
        let name = "shared::stall::watch::tests::a_process_that_is_stopped_notices_afterwards";
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture", "--test-threads=1"])
            .env(TOLD, "1")
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let out = child.stdout.take().unwrap();
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(out));
        assert!(lines.any(|line| line.unwrap().ends_with("ready")));
        let pid = Pid::from_raw(child.id().cast_signed()).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
        // The length of the stop is under test, so there is no condition to wait for.
        std::thread::sleep(Duration::from_millis(500));
        kill_process(pid, Signal::CONT).unwrap();
        assert!(child.wait().unwrap().success());
    }
}
