//! The kernel's counters, read from `/proc`. A counter is absent where the kernel does not have it.

use std::collections::HashMap;

/// Readings at one moment. All of them only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    pub(super) cpu_pressure_ns: Option<u64>,
    pub(super) memory_pressure_ns: Option<u64>,
    pub(super) io_pressure_ns: Option<u64>,
    pub(super) steal_ns: Option<u64>,
}

impl Counters {
    pub(super) fn now() -> Self {
        let pressure = |of: &str| pressure(&read(&format!("/proc/pressure/{of}"))?);
        Self {
            cpu_pressure_ns: pressure("cpu"),
            memory_pressure_ns: pressure("memory"),
            io_pressure_ns: pressure("io"),
            steal_ns: read("/proc/stat").as_deref().and_then(steal),
        }
    }

    /// The increase since an earlier reading.
    pub(super) fn since(self, before: Self) -> Self {
        let grown = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Self {
            cpu_pressure_ns: grown(self.cpu_pressure_ns, before.cpu_pressure_ns),
            memory_pressure_ns: grown(self.memory_pressure_ns, before.memory_pressure_ns),
            io_pressure_ns: grown(self.io_pressure_ns, before.io_pressure_ns),
            steal_ns: grown(self.steal_ns, before.steal_ns),
        }
    }
}

/// How long each thread of this process has waited for a CPU so far, in nanoseconds.
pub(super) fn run_delays() -> HashMap<String, u64> {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let of_thread = |thread: std::fs::DirEntry| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        let name = thread.file_name().into_string().ok()?;
        Some((name, run_delay(&text)?))
    };
    threads.flatten().filter_map(of_thread).collect()
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// The line `some avg10=... total=MICROSECONDS`: how long some task was ready and had to wait.
fn pressure(text: &str) -> Option<u64> {
    let some = text.lines().find(|line| line.starts_with("some "))?;
    let total = some.split("total=").nth(1)?;
    Some(total.trim().parse::<u64>().ok()?.saturating_mul(1_000))
}

/// Ticks of all CPUs that the hypervisor gave to others: the eighth number of the line `cpu`.
fn steal(text: &str) -> Option<u64> {
    /// The length of a tick in the files that the kernel shows to programs.
    const TICK_NS: u64 = 10_000_000;
    let all = text.lines().find(|line| line.starts_with("cpu "))?;
    let ticks: u64 = all.split_whitespace().nth(8)?.parse().ok()?;
    Some(ticks.saturating_mul(TICK_NS))
}

/// The second number: nanoseconds spent waiting for a CPU.
fn run_delay(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_writes_is_understood() {
        let text = "some avg10=1.39 avg60=2.74 avg300=3.67 total=21398937896\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=17\n";
        assert_eq!(pressure(text), Some(21_398_937_896_000));
        let text = "cpu  3197611 1990144 823790 1875698 28225 0 94306 1339 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(steal(text), Some(13_390_000_000));
        assert_eq!(run_delay("592668006 496168564 273\n"), Some(496_168_564));
        for nonsense in ["", "full total=1", "some avg10=0.00", "cpu", "x y z"] {
            assert_eq!(
                (pressure(nonsense), steal(nonsense), run_delay(nonsense)),
                (None, None, None)
            );
        }
        let before = Counters {
            cpu_pressure_ns: Some(5),
            steal_ns: Some(7),
            ..Counters::default()
        };
        let now = Counters {
            cpu_pressure_ns: Some(9),
            io_pressure_ns: Some(1),
            steal_ns: Some(7),
            ..Counters::default()
        };
        let grown = now.since(before);
        assert_eq!((grown.cpu_pressure_ns, grown.steal_ns), (Some(4), Some(0)));
        assert_eq!(grown.io_pressure_ns, None);
    }
}
