//! Pins a run to cores: servers on one, workers on the other, and both kept awake.
//!
//! Without this a round trip on a small machine has two modes, because a sleeping core takes four
//! times as long to answer, and every ratio depends on the mode.

use std::process::Stdio;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tokio::process::{Child, Command};

use crate::measure::model::Pinning;

/// The cores of a pinned run. Dropping this ends its spinners.
#[derive(Debug)]
pub struct PinnedCores {
    pinning: Pinning,
    _spinners: Vec<Child>,
}

impl PinnedCores {
    /// No pinning.
    #[must_use]
    pub fn off() -> Self {
        let pinning = Pinning {
            pinned: false,
            server_cores: Vec::new(),
            client_cores: Vec::new(),
        };
        Self {
            pinning,
            _spinners: Vec::new(),
        }
    }

    /// Servers on the first core that this process may use, workers on the second, and on both a
    /// process of idle priority that keeps the core awake.
    ///
    /// # Errors
    ///
    /// What this machine lacks.
    pub fn on() -> Result<Self, String> {
        let allowed = sched_getaffinity(None).map_err(|error| error.to_string())?;
        let mut cores = (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core));
        let (Some(first), Some(second)) = (cores.next(), cores.next()) else {
            return Err("pinning needs two cores, this machine gives one".to_owned());
        };
        let number = |core: usize| u32::try_from(core).unwrap_or(0);
        let (servers, clients) = (number(first), number(second));
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let spin = |core: u32| {
            Command::new("chrt")
                .args(["--idle", "0"])
                .arg(&program)
                .args(["spin", &core.to_string()])
                .stdin(Stdio::piped())
                .kill_on_drop(true)
                .spawn()
                .map_err(|error| format!("cannot start chrt (package util-linux): {error}"))
        };
        let pinning = Pinning {
            pinned: true,
            server_cores: vec![servers],
            client_cores: vec![clients],
        };
        Ok(Self {
            pinning,
            _spinners: vec![spin(servers)?, spin(clients)?],
        })
    }

    /// The setting as the report shows it.
    #[must_use]
    pub fn pinning(&self) -> Pinning {
        self.pinning.clone()
    }

    /// The core for workers.
    #[must_use]
    pub fn worker_core(&self) -> Option<u32> {
        self.pinning.client_cores.first().copied()
    }

    /// Moves server processes to their core.
    ///
    /// # Errors
    ///
    /// The process that could not be moved.
    pub fn pin_servers(&self, pids: &[u32]) -> Result<(), String> {
        let Some(&core) = self.pinning.server_cores.first() else {
            return Ok(());
        };
        let mut set = CpuSet::new();
        set.set(usize::try_from(core).unwrap_or(0));
        for &pid in pids {
            let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
            let process = process.ok_or_else(|| format!("{pid} is no process id"))?;
            // Redis has helper threads, but the main thread serves commands.
            sched_setaffinity(Some(process), &set)
                .map_err(|error| format!("cannot pin process {pid}: {error}"))?;
        }
        Ok(())
    }
}
