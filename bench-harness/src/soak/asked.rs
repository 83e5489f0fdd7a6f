//! The size and length of a soak.

use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;

/// The settings of a soak. If the machine cannot reach them, the soak fails.
#[derive(Clone, Debug, Serialize)]
pub struct Asked {
    /// How long the stream of acquisitions lasts.
    #[serde(with = "humantime_serde")]
    pub lasts: Duration,
    /// Locks that are held and renewed throughout.
    pub held: usize,
    /// Waiters on one lock; each is served again and again.
    pub waiters: usize,
    /// Acquisitions started each second, even if earlier ones have not ended.
    pub rate: u32,
    /// How often the server is restarted, alternately with SIGKILL and cleanly.
    pub restarts: u32,
    /// The faults to plant.
    pub leaks: Vec<Leak>,
}

/// A fault that the soak plants, to see that a check fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Leak {
    /// A key that belongs to no lock and does not expire.
    Key,
    /// A place in a queue without a waiter.
    Waiter,
    /// A subscription to a channel.
    Channel,
    /// A subscription to a pattern.
    Pattern,
    /// An open file.
    File,
    /// A task that never ends.
    Task,
    /// Memory that grows.
    Memory,
    /// A held lock is deleted.
    Held,
    /// A worker enters every contended lock without holding it.
    Overlap,
    /// Every second acquisition is left out.
    Rate,
    /// A waiter gives up.
    Crowd,
    /// A request fails for a reason that is no server's fault.
    Error,
    /// A restart is left out.
    Restart,
}

impl Asked {
    /// Whether this is planted.
    #[must_use]
    pub fn plants(&self, leak: Leak) -> bool {
        self.leaks.contains(&leak)
    }
}
