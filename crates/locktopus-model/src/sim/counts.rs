//! How much happens in schedules.

/// How much happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Things that happened.
    pub events: u64,
    /// Scripts that ran.
    pub scripts: u64,
    /// Times that a process began to believe that it holds the lock.
    pub grants: u64,
    /// Those of them without a round trip, by a pushed grant.
    pub pushed: u64,
    /// Grants by a script of another process, pushed.
    pub handed: u64,
    /// Times that a process took up a lease that it had kept.
    pub again: u64,
    /// Times that somebody asked for the name, which was in use, as another kind.
    pub strange: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.scripts += other.scripts;
        self.grants += other.grants;
        self.pushed += other.pushed;
        self.handed += other.handed;
        self.again += other.again;
        self.strange += other.strange;
    }
}
