//! The scripts, as far as a lock with one holder needs them.

use super::rules::{LONGEST, Rules, Wait};
use super::state::{Record, Seen, Server};

/// The answer of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Granted,
    /// To the present holder.
    GrantedAgain,
    /// Earlier than without the client's word for the history.
    GrantedByWord,
    Held,
    HeldBack,
    Extended,
    Missing,
}

impl Server {
    /// `lua/acquire.lua`, with `status` wrapped by `guarded`.
    pub(super) fn acquire(
        &mut self,
        rules: Rules,
        owner: u8,
        seen: Option<Seen>,
        epoch: u8,
    ) -> Answer {
        let again = match self.data.hold {
            Some((holder, _)) if holder != owner => return Answer::Held,
            // An owner may repeat its own acquisition.
            hold => hold.is_some(),
        };
        let word = match rules.wait {
            _ if again => false,
            Wait::Nobody => false,
            Wait::Client => {
                let waits = |seen: Seen| seen.history == self.history && seen.age < LONGEST;
                if seen.is_some_and(waits) {
                    return Answer::HeldBack;
                }
                false
            }
            Wait::Server | Wait::ServerTooShort => {
                let (left, word) = self.held_back(rules, seen, epoch);
                if left > 0 {
                    return Answer::HeldBack;
                }
                word
            }
        };
        self.data.hold = Some((owner, rules.lease()));
        match (again, word) {
            (true, _) => Answer::GrantedAgain,
            (false, true) => Answer::GrantedByWord,
            (false, false) => Answer::Granted,
        }
    }

    /// `held_back` in `lua/part/quarantine.lua`: the rest of the quarantine, and whether a client's
    /// word made it shorter.
    fn held_back(&mut self, rules: Rules, seen: Option<Seen>, epoch: u8) -> (u8, bool) {
        let longest = match rules.wait {
            Wait::ServerTooShort => LONGEST - 1,
            _ => LONGEST,
        };
        let known = self.data.record;
        let known = known.filter(|record| {
            record.history == self.history && (record.epoch >= epoch || !rules.epochs_tell)
        });
        let ends = known.map_or(longest, |record| record.left);
        let this = |seen: &Seen| {
            let same = seen.history == self.history && (seen.epoch == epoch || !rules.epochs_tell);
            same || !rules.vouches_for_this
        };
        let age = seen.filter(this).map_or(0, |seen| seen.age);
        let left = ends.min(longest - age.min(longest));
        self.data.record = Some(Record {
            history: self.history,
            epoch: known.map_or(epoch, |record| record.epoch),
            left,
        });
        (left, left < ends)
    }

    /// `lua/lock_extend.lua`, which is the same under quarantine.
    pub(super) fn extend(&mut self, rules: Rules, owner: u8) -> Answer {
        match &mut self.data.hold {
            Some((holder, left)) if *holder == owner => *left = rules.lease(),
            _ => return Answer::Missing,
        }
        Answer::Extended
    }

    /// `lua/release.lua`; under quarantine, and without a queue, it hands the lock to no one.
    pub(super) fn release(&mut self, owner: u8) {
        self.data.hold.take_if(|(holder, _)| *holder == owner);
    }
}
