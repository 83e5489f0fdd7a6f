//! Things that must be gone when all workers have finished.

use serde::Serialize;

/// The things that the runner found on the servers and in the processes at the end, when nothing
/// more was expected to finish. The checker judges that there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[expect(clippy::exhaustive_structs, reason = "others write it with `..`")]
pub struct Leftovers {
    /// Names of the keys of locks.
    pub keys: Vec<String>,
    /// Waiters in queues, and listeners on channels.
    pub waiters: Vec<String>,
    /// Tasks of the library.
    pub tasks: Vec<String>,
}

impl Leftovers {
    /// The number of things left.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.keys.len() + self.waiters.len() + self.tasks.len()
    }
}
