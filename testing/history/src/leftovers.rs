//! What must be gone when everybody has finished.

use serde::Serialize;

/// What the runner found on the servers and in the processes at the end, when nothing was left
/// to wait for. The checker judges that it is nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "others write it as a literal with `..`"
)]
pub struct Leftovers {
    /// Names of the keys of locks.
    pub keys: Vec<String>,
    /// Waiters in queues, and listeners on channels.
    pub waiters: Vec<String>,
    /// Tasks of the library.
    pub tasks: Vec<String>,
}

impl Leftovers {
    /// How many things were left.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.keys.len() + self.waiters.len() + self.tasks.len()
    }
}
