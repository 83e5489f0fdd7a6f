//! The calls that reach a backend's store.

/// What a backend is asked to do. Questions that it answers without asking its store (names,
/// shards, groups) are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Call {
    /// Try once to take a lock, or several of a group.
    Attempt,
    /// Give a lock back.
    Release,
    /// Push expiries out: every renewal of the watchdog.
    Extend,
    /// Read the state of a lock.
    Inspect,
    /// Read or change the number inside a semaphore or a latch.
    Count,
    /// Take a lock away from whoever holds it.
    Evict,
    /// List held locks.
    Scan,
    /// Write, or take back, what an instance says about itself.
    Announce,
    /// Read what instances say about themselves.
    Instances,
    /// Listen for grants and releases.
    Subscribe,
    /// Look for what silently breaks locks.
    Diagnose,
}
