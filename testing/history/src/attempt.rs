//! One attempt, built from its records.

use crate::event::{AttemptId, Grant, Write};

/// An attempt and its outcome.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) id: AttemptId,
    /// The holder, which may re-enter; numbered by the assembler.
    pub(super) holder: u32,
    /// Whether other attempts may have the same holder.
    pub(super) shares_holder: bool,
    pub(super) started: u64,
    /// When it was known to be in the queue.
    pub(super) enqueued: Option<u64>,
    pub(super) answer: Answer,
    /// The last record of its worker: anything unfinished certainly lasted until then.
    pub(super) alive_until: u64,
    /// Whether its worker was cut off: it may have done more than it recorded.
    pub(super) cut_off: bool,
}

#[derive(Debug)]
pub(super) enum Answer {
    /// None yet.
    Pending,
    Failed {
        at: u64,
        waited_until: Option<u64>,
    },
    Granted(Box<Held>),
}

/// A grant and its holder's actions.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) at: u64,
    pub(super) grant: Grant,
    /// When the holder could believe that it holds the lock, as pairs of start and end. More than
    /// one pair only if the lock was extended after its end.
    pub(super) believed: Vec<(u64, u64)>,
    pub(super) uses: Vec<(u64, Option<u64>)>,
    pub(super) writes: Vec<(u64, Write)>,
    pub(super) lost: Option<Lost>,
    pub(super) release_started: Option<u64>,
    pub(super) release_ended: Option<u64>,
    /// Extensions after the end.
    pub(super) late_extensions: Vec<u64>,
    /// The last record of this attempt.
    pub(super) touched: u64,
    /// Index into the lock's tenures.
    pub(super) tenure: usize,
    /// Whether its holder had the lock already.
    pub(super) reentrant: bool,
}

#[derive(Debug)]
pub(super) struct Lost {
    pub(super) at: u64,
    /// When the local validity ended, as the holder reported it.
    pub(super) valid_until: u64,
    /// The end of the belief, had there been no signal.
    promised: u64,
    /// The index of the belief that it ended.
    ended: usize,
}

/// One holder's uninterrupted possession, re-entries included.
///
/// One tenure is certainly later than another if its request came after the other grant had been
/// received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tenure {
    /// When its first attempt started.
    pub(super) started: u64,
    /// When its first grant was received.
    pub(super) granted: u64,
}

impl Attempt {
    pub(super) fn held(&self) -> Option<&Held> {
        match &self.answer {
            Answer::Granted(held) => Some(held),
            Answer::Pending | Answer::Failed { .. } => None,
        }
    }

    pub(super) fn held_mut(&mut self) -> Option<&mut Held> {
        match &mut self.answer {
            Answer::Granted(held) => Some(held),
            Answer::Pending | Answer::Failed { .. } => None,
        }
    }

    /// Uses, including the certain part of one that never ended.
    pub(super) fn certain_uses(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let uses = self.held().map_or(&[][..], |held| &held.uses);
        uses.iter()
            .map(|&(start, end)| (start, end.unwrap_or(self.alive_until).max(start)))
    }
}

impl Held {
    pub(super) fn new(at: u64, grant: Grant) -> Self {
        let believed = vec![(at, grant.valid_until.max(at))];
        Self {
            at,
            grant,
            believed,
            uses: Vec::new(),
            writes: Vec::new(),
            lost: None,
            release_started: None,
            release_ended: None,
            late_extensions: Vec::new(),
            touched: at,
            tenure: 0,
            reentrant: false,
        }
    }

    /// Whether it had ended when it was received.
    pub(super) const fn was_spent(&self) -> bool {
        self.grant.valid_until <= self.at
    }

    /// The holder learned that validity now ends at `valid_until`.
    pub(super) fn extended(&mut self, at: u64, valid_until: u64) {
        if self.release_started.is_some() {
            // An extension that was on its way when the release started proves nothing.
            if self.release_ended.is_some() {
                self.late_extensions.push(at);
            }
        } else if self.lost.is_some() || at > self.end() {
            self.revived(at, valid_until);
        } else {
            *self.end_mut() = valid_until.max(at);
        }
    }

    /// The guard reported `valid_until`; it may have been extended at any time before.
    pub(super) fn observed(&mut self, at: u64, valid_until: u64) {
        if self.release_started.is_some() {
            return;
        }
        if let Some(lost) = &self.lost {
            // A guard may repeat an earlier report, but must not report more.
            if valid_until > at.max(lost.promised) {
                self.revived(at, valid_until);
            }
        } else {
            // A shorter validity ends the earlier belief, but not in the past.
            let end = self.end_mut();
            *end = valid_until.max(at.min(*end));
        }
    }

    pub(super) fn lost(&mut self, at: u64, valid_until: u64) {
        if self.release_started.is_some() {
            return;
        }
        let promised = self.end().max(valid_until);
        self.lost.get_or_insert(Lost {
            at,
            valid_until,
            promised,
            ended: self.believed.len() - 1,
        });
        *self.end_mut() = promised;
        self.ends_at(at);
    }

    pub(super) fn release_started(&mut self, at: u64) {
        self.release_started = Some(at);
        self.ends_at(at);
    }

    /// Until when the lock may be used; `reaction` is the time to react to the signal of a loss.
    pub(super) fn usable_until(&self, reaction: u64) -> u64 {
        match &self.lost {
            Some(lost) if lost.ended == 0 => {
                let allowed = lost.promised.min(lost.at.saturating_add(reaction));
                self.release_started
                    .map_or(allowed, |release| allowed.min(release))
            }
            Some(_) | None => self.believed.first().map_or(self.at, |&(_, end)| end),
        }
    }

    /// When the lock has certainly ended for the holder.
    pub(super) fn end(&self) -> u64 {
        self.believed.last().map_or(self.at, |&(_, end)| end)
    }

    fn end_mut(&mut self) -> &mut u64 {
        if self.believed.is_empty() {
            self.believed.push((self.at, self.at));
        }
        let last = self.believed.len() - 1;
        &mut self.believed[last].1
    }

    fn ends_at(&mut self, at: u64) {
        let end = self.end_mut();
        *end = at.min(*end);
    }

    fn revived(&mut self, at: u64, valid_until: u64) {
        self.late_extensions.push(at);
        self.believed.push((at, valid_until.max(at)));
    }
}
