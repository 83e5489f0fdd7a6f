//! The machine, as far as the kernel reports it without privileges.

use std::fs::read_to_string;

use crate::shared::provenance::{Environment, Pinning};

/// The machine this runs on. The runner passes the pinning.
#[must_use]
pub fn environment(pinning: Pinning) -> Environment {
    let unknown = || "unknown".to_owned();
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    Environment {
        os: field("/etc/os-release", '=', "PRETTY_NAME")
            .unwrap_or_else(|| std::env::consts::OS.to_owned()),
        kernel: read_to_string("/proc/sys/kernel/osrelease")
            .map_or_else(|_| unknown(), |text| text.trim().to_owned()),
        arch: std::env::consts::ARCH.to_owned(),
        cpu_model: field("/proc/cpuinfo", ':', "model name").unwrap_or_else(unknown),
        logical_cores: u32::try_from(cores).unwrap_or(u32::MAX),
        memory_bytes: memory_bytes().unwrap_or(0),
        load_average_at_start: load_average(),
        pinning,
    }
}

/// The value of the first line `name SEPARATOR value` of a file, without quotes.
fn field(path: &str, separator: char, name: &str) -> Option<String> {
    let text = read_to_string(path).ok()?;
    let (_, value) = text
        .lines()
        .filter_map(|line| line.split_once(separator))
        .find(|(n, _)| n.trim() == name)?;
    Some(value.trim().trim_matches('"').to_owned())
}

fn memory_bytes() -> Option<u64> {
    let text = field("/proc/meminfo", ':', "MemTotal")?;
    text.strip_suffix("kB")?
        .trim()
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

fn load_average() -> Option<[f64; 3]> {
    let text = read_to_string("/proc/loadavg").ok()?;
    let mut numbers = text.split_whitespace().map(|word| word.parse().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn something_is_known_everywhere() {
        let found = environment(Pinning::default());
        assert!(found.logical_cores > 0);
        assert!(!found.os.is_empty() && !found.cpu_model.is_empty());
    }
}
