//! The resources that this process has used.

use rustix::time::{ClockId, clock_gettime};

/// CPU time of all threads of this process so far, in nanoseconds.
pub(super) fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let nanos = i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    u64::try_from(nanos).unwrap_or(0)
}

/// Resident memory of this process, in bytes; `None` if the kernel does not report it.
pub(super) fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim()
        .strip_suffix("kB")?
        .trim()
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_and_memory_are_seen() {
        let (cpu, memory) = (cpu_ns(), resident_bytes().unwrap());
        let filled = vec![1_u8; 64 << 20];
        assert_eq!(
            filled.iter().map(|byte| u64::from(*byte)).sum::<u64>(),
            64 << 20
        );
        assert!(cpu_ns() > cpu);
        assert!(resident_bytes().unwrap() > memory + (32 << 20));
        drop(filled);
    }
}
