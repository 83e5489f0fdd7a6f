//! The calls that reach a backend's store.

/// A call to a backend. Questions that it answers without its store (names, shards, groups) do not
/// count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Call {
    /// Try once to take a lock, or several of a group.
    Attempt,
    /// Give a lock back.
    Release,
    /// Extend leases: every renewal of the watchdog.
    Extend,
    /// Read the state of a lock.
    Inspect,
    /// Read or change the number of a semaphore, a rate limiter or a latch.
    Count,
    /// Take a lock away from its holders.
    Evict,
    /// List held locks.
    Scan,
    /// Write or remove the record of an instance.
    Announce,
    /// Read the records of instances.
    Instances,
    /// Listen for grants and releases.
    Subscribe,
    /// Look for settings that silently break locks.
    Diagnose,
}
