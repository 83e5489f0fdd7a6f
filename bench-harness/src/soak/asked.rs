//! How much, and for how long.

use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;

/// What a soak is asked to do. None of it is a limit of the machine: what cannot be reached is a
/// failure.
#[derive(Clone, Debug, Serialize)]
pub struct Asked {
    /// How long the stream of acquisitions lasts.
    #[serde(with = "humantime_serde")]
    pub lasts: Duration,
    /// Locks that are held and renewed all the time.
    pub held: usize,
    /// Waiters on one lock, all of which are served, again and again.
    pub waiters: usize,
    /// Acquisitions begun each second, whatever became of those before.
    pub rate: u32,
    /// How often the server is restarted, in turn by SIGKILL and in good order.
    pub restarts: u32,
    /// What is planted.
    pub leaks: Vec<Leak>,
}

/// A fault of the soak's own, to see that a check fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Leak {
    /// A key that is no lock's and does not expire.
    Key,
    /// A place in a queue of which nobody knows.
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
    /// Somebody is inside of every contended lock who holds none of them.
    Overlap,
    /// Every second acquisition is left out.
    Rate,
    /// A waiter gives up.
    Crowd,
    /// A request that no server can be blamed for fails.
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
