//! Whether a lock that is free and wanted is taken before long.

use std::collections::{BTreeMap, BTreeSet};

use super::{Invariant, Judge};
use crate::sim::rules::Micros;
use crate::sim::setup::Setup;

/// A task that wants the lock.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    since: Micros,
    /// When it last asked for it.
    tried: Micros,
}

/// Who wants the lock, and since when nobody had it.
#[derive(Debug)]
pub(super) struct Stalls {
    patience: Micros,
    /// How long a waiter may be silent.
    silence: Micros,
    /// Processes that are stopped for a while.
    paused: BTreeSet<usize>,
    /// Tasks that somebody will look at again.
    looked_after: BTreeSet<(usize, usize)>,
    wanted: BTreeMap<(usize, usize), Wanted>,
    /// When the last one that had it stopped believing, or will.
    believed_until: Micros,
    /// Counts changes: what is overdue since an earlier one is not.
    changes: u64,
    asked: Option<u64>,
}

impl Stalls {
    pub(super) fn new(setup: &Setup) -> Self {
        let faults = setup.faults;
        let steps = i64::try_from(faults.steps).unwrap_or(0);
        let droughts = i64::try_from(faults.droughts + faults.failovers).unwrap_or(0);
        // A server's clock that is set back keeps dead holders and dead waiters for longer.
        let extra = (steps * 2 + droughts * 2) * setup.rules.lease;
        Self {
            patience: setup.patience(faults.crashes) + extra,
            silence: setup.silence(),
            paused: BTreeSet::new(),
            looked_after: BTreeSet::new(),
            wanted: BTreeMap::new(),
            believed_until: 0,
            changes: 0,
            asked: None,
        }
    }

    pub(super) fn believed(&mut self, until: Micros) {
        self.believed_until = self.believed_until.max(until);
        self.changes += 1;
    }

    pub(super) fn believed_until(&mut self, until: Micros) {
        self.believed_until = until;
        self.changes += 1;
    }

    pub(super) fn died(&mut self, now: Micros, process: usize) {
        self.wanted.retain(|(wanting, _), _| *wanting != process);
        self.paused.remove(&process);
        self.believed_until = self.believed_until.max(now);
        self.changes += 1;
    }

    /// Since when somebody who runs has wanted it.
    fn wanted_since(&self) -> Option<Micros> {
        let running = self
            .wanted
            .iter()
            .filter(|((process, _), _)| !self.paused.contains(process));
        running.map(|(_, wanted)| wanted.since).min()
    }
}

impl Judge {
    /// A task of a process wants the lock, or does not any more. True if it should be looked after.
    pub(in crate::sim) fn wants(
        &mut self,
        now: Micros,
        process: usize,
        task: usize,
        wants: bool,
    ) -> bool {
        self.stalls.changes += 1;
        if !wants {
            self.stalls.wanted.remove(&(process, task));
            return false;
        }
        let looked_after = self.stalls.looked_after.insert((process, task));
        self.stalls.wanted.insert(
            (process, task),
            Wanted {
                since: now,
                tried: now,
            },
        );
        looked_after
    }

    /// A task asks for the lock.
    pub(in crate::sim) fn tried(&mut self, now: Micros, process: usize, task: usize) {
        if let Some(wanted) = self.stalls.wanted.get_mut(&(process, task)) {
            wanted.tried = now;
        }
    }

    /// Whether a waiter shows life. Says when to look again.
    pub(in crate::sim) fn silent(
        &mut self,
        now: Micros,
        process: usize,
        task: usize,
    ) -> Option<Micros> {
        let silence = self.stalls.silence;
        let Some(wanted) = self.stalls.wanted.get(&(process, task)).copied() else {
            self.stalls.looked_after.remove(&(process, task));
            return None;
        };
        if self.stalls.paused.contains(&process) {
            return Some(now + silence);
        }
        self.check(
            now - wanted.tried < silence,
            now,
            Invariant::ShowsLife,
            || format!("task {task} of process {process} waits and has not asked for {silence} us"),
        );
        Some(wanted.tried + silence)
    }

    /// A process is stopped, or goes on.
    pub(in crate::sim) fn paused(&mut self, now: Micros, process: usize, paused: bool) {
        if paused {
            self.stalls.paused.insert(process);
        } else {
            self.stalls.paused.remove(&process);
            // What it wanted while it was stopped, it wants from now on.
            for ((wanting, _), wanted) in &mut self.stalls.wanted {
                if *wanting == process {
                    *wanted = Wanted {
                        since: now,
                        tried: now,
                    };
                }
            }
        }
        self.stalls.changes += 1;
    }

    /// When to look whether the lock has been free and wanted for too long; once for each change.
    pub(in crate::sim) fn next_overdue(&mut self) -> Option<(Micros, u64)> {
        let stalls = &mut self.stalls;
        let since = stalls.wanted_since()?.max(stalls.believed_until);
        if stalls.asked == Some(stalls.changes) {
            return None;
        }
        stalls.asked = Some(stalls.changes);
        Some((since + stalls.patience, stalls.changes))
    }

    /// It has been free and wanted for long, unless something has changed.
    pub(in crate::sim) fn overdue(&mut self, now: Micros, since: u64) {
        let patience = self.stalls.patience;
        self.check(
            self.stalls.changes != since,
            now,
            Invariant::NoStall,
            || format!("free and wanted for {} ms", patience / 1_000),
        );
    }
}
