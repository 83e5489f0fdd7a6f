//! Blocks of free ports, agreed between test processes that start at the same moment.
//!
//! Probing alone is a race: two processes may both find the same block free. So the range is
//! divided into units, each with a lock file that the owner holds until its servers are gone. The
//! kernel drops the lock when the owner dies, for any reason.

use std::collections::hash_map::RandomState;
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::topology::error::TopologyError;
use crate::topology::plan::BUS;

/// Above the usual service ports, and low enough that bus ports stay below the range that systems
/// use for outgoing connections.
const FIRST: u16 = 12_000;
const END: u16 = 22_000;
const UNIT: u16 = 8;

/// Otherwise a server could take the bus port of a stopped one, which then cannot start again.
const _: () = assert!(END <= FIRST + BUS);

/// Contiguous ports, reserved until this is dropped.
#[derive(Debug)]
pub(crate) struct PortBlock {
    pub(crate) base: u16,
    _locks: Vec<File>,
}

impl PortBlock {
    /// Reserves `count` ports, and the bus ports above them when `bus` is set.
    pub(crate) fn reserve(count: u16, bus: bool) -> Result<Self, TopologyError> {
        let dir = lock_dir()?;
        let units = (END - FIRST) / UNIT;
        let wanted = count.div_ceil(UNIT);
        // A random start spreads processes out; searching on from there still finds any free block.
        let start = RandomState::new().build_hasher().finish() % u64::from(units);
        let start = u16::try_from(start).unwrap_or(0);
        for step in 0..units {
            let unit = (start + step) % units;
            if unit + wanted > units {
                continue;
            }
            let base = FIRST + unit * UNIT;
            if let Some(locks) = lock_units(&dir, unit, wanted)?
                && all_free(base, count, bus)
            {
                return Ok(Self {
                    base,
                    _locks: locks,
                });
            }
        }
        Err(TopologyError::NoPorts { count, below: END })
    }
}

fn lock_dir() -> Result<PathBuf, TopologyError> {
    let user = rustix::process::getuid().as_raw();
    let dir = std::env::temp_dir().join(format!("locktopus-ports-{user}"));
    std::fs::create_dir_all(&dir).map_err(TopologyError::io("create", &dir))?;
    Ok(dir)
}

fn lock_units(dir: &Path, first: u16, count: u16) -> Result<Option<Vec<File>>, TopologyError> {
    let mut locks = Vec::new();
    for unit in first..first + count {
        let path = dir.join(format!("{unit}.lock"));
        let file = File::options()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(TopologyError::io("open", &path))?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        locks.push(file);
    }
    Ok(Some(locks))
}

fn all_free(base: u16, count: u16, bus: bool) -> bool {
    (base..base + count).all(|port| is_free(port) && (!bus || is_free(port + BUS)))
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_do_not_overlap_while_held() {
        let mut seen = Vec::new();
        for _ in 0..20 {
            let block = PortBlock::reserve(9, true).unwrap();
            assert!(block.base + 9 <= END);
            seen.push(block);
        }
        let mut bases: Vec<_> = seen.iter().map(|block| block.base).collect();
        bases.sort_unstable();
        assert!(bases.windows(2).all(|pair| pair[1] - pair[0] >= 16));
    }
}
