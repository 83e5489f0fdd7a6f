//! The stalls of the machine during a measurement, as a report shows them.

use serde::{Deserialize, Serialize};

/// How long the machine kept tasks waiting, and this program in particular, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineStall {
    /// How long it was watched.
    pub watched_ns: u64,
    /// How long some task was ready and had no CPU (`/proc/pressure/cpu`); absent where the kernel
    /// does not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_pressure_ns: Option<u64>,
    /// The same for memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_pressure_ns: Option<u64>,
    /// The same for disks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_pressure_ns: Option<u64>,
    /// Time that the hypervisor gave to others, over all CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal_ns: Option<u64>,
    /// How often a thread of the harness was ready and did not run for 5 ms or longer.
    pub gaps: u64,
    /// The total length of these gaps.
    pub gaps_ns: u64,
    /// The longest gap.
    pub longest_gap_ns: u64,
}

impl MachineStall {
    /// In words, for a reader who looks for the cause of a delay.
    #[must_use]
    pub fn describe(&self) -> String {
        let share = |part: u64| 100 * part / self.watched_ns.max(1);
        let mut text = format!(
            "the harness stalled {} times for 5 ms or longer, at most {} ms",
            self.gaps,
            self.longest_gap_ns / 1_000_000
        );
        let counted = [
            ("tasks waited for a CPU", self.cpu_pressure_ns),
            ("for a disk", self.io_pressure_ns),
            ("for memory", self.memory_pressure_ns),
        ];
        for (what, part) in counted {
            if let Some(part) = part {
                text = format!("{text}, {what} {} % of the time", share(part));
            }
        }
        if let Some(stolen) = self.steal_ns {
            text = format!("{text}, the hypervisor took {} ms", stolen / 1_000_000);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_described_by_what_it_counts() {
        let stall = MachineStall {
            watched_ns: 10_000_000_000,
            cpu_pressure_ns: Some(9_500_000_000),
            steal_ns: Some(120_000_000),
            gaps: 3,
            gaps_ns: 90_000_000,
            longest_gap_ns: 61_000_000,
            ..MachineStall::default()
        };
        assert_eq!(
            stall.describe(),
            "the harness stalled 3 times for 5 ms or longer, at most 61 ms, tasks waited for a CPU 95 % of the time, \
             the hypervisor took 120 ms"
        );
        assert!(!MachineStall::default().describe().is_empty());
    }
}
