//! The machine a run was measured on.

use serde::{Deserialize, Serialize};

/// The machine, and how busy it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Operating system, such as `Debian GNU/Linux 12`.
    pub os: String,
    /// Kernel release.
    pub kernel: String,
    /// CPU architecture, such as `x86_64`.
    pub arch: String,
    /// CPU model as the kernel names it.
    pub cpu_model: String,
    /// Logical cores the harness could use.
    pub logical_cores: u32,
    /// Physical memory; 0 when unknown.
    pub memory_bytes: u64,
    /// Load averages over 1, 5 and 15 minutes when the run began. On a busy machine the figures
    /// show the machine.
    pub load_average_at_start: Option<[f64; 3]>,
    /// The cores that servers and clients were confined to.
    pub pinning: Pinning,
}

/// Confinement of processes to cores. Without it a loopback round trip is often bimodal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pinning {
    /// Whether servers and clients were pinned.
    pub pinned: bool,
    /// Cores of the servers.
    pub server_cores: Vec<u32>,
    /// Cores of the clients.
    pub client_cores: Vec<u32>,
}

/// The highest one-minute load average at which a machine counts as idle.
pub const IDLE_LOAD: f64 = 1.0;

impl Environment {
    /// The load average when the run began, if the machine was busy.
    #[must_use]
    pub fn busy(&self) -> Option<f64> {
        let [one, ..] = self.load_average_at_start?;
        (one > IDLE_LOAD).then_some(one)
    }
}

impl Pinning {
    /// The setting in words.
    #[must_use]
    pub fn describe(&self) -> String {
        if !self.pinned {
            return "not pinned".to_owned();
        }
        let list = |cores: &[u32]| {
            let names: Vec<_> = cores.iter().map(u32::to_string).collect();
            if names.is_empty() {
                "any".to_owned()
            } else {
                names.join(",")
            }
        };
        format!(
            "servers on core {}, clients on core {}",
            list(&self.server_cores),
            list(&self.client_cores)
        )
    }
}
