//! The possible hold of one owner on one node, as far as the answers prove. Independent of calls
//! and clocks.
//!
//! Messages may overtake each other, between connections and behind routers. So only answers prove
//! anything. A release that was sent while an attempt was on its way says nothing about that
//! attempt, unless the release found its hold.

use tokio::time::Instant;

use locktopus_contract::{AttemptOutcome, ReleaseOutcome};

use super::abstention::Abstention;

/// The possible hold on one node.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct NodeHold {
    in_flight: u32,
    may_hold: bool,
    /// Attempts were under way at the same time, so it is unknown which the node ran last.
    overlapped: bool,
    /// The node can hold nothing except the attempt under way.
    alone: bool,
    /// An attempt got no answer, and may arrive until then.
    late: Option<Instant>,
    cleaning: bool,
    /// An attempt was granted since the last release was sent, and that release may have overtaken
    /// it.
    raced: bool,
    /// A release found the only attempt under way. So the attempt has run, even if its answer
    /// fails.
    found: bool,
    /// When to send the next release if that is to be the last one.
    due: Option<Instant>,
    /// A release got no answer. It may still arrive, and would undo any later attempt. So this
    /// owner can no longer use the node.
    spoilt: bool,
}

/// The state that an attempt found when it began.
#[derive(Debug, Clone, Copy)]
pub(super) struct AttemptBegun {
    held_before: bool,
}

impl NodeHold {
    /// An upper bound on what an unknown owner may hold.
    pub(super) fn unknown() -> Self {
        Self {
            may_hold: true,
            ..Self::default()
        }
    }

    pub(super) fn is_clean(&self) -> bool {
        self.in_flight == 0 && !self.may_hold && self.late.is_none() && !self.cleaning
    }

    pub(super) fn is_spoilt(&self) -> bool {
        self.spoilt
    }

    pub(super) fn is_cleaning(&self) -> bool {
        self.cleaning
    }

    pub(super) fn has_landed(&self) -> bool {
        self.in_flight == 0
    }

    /// When to send the next release if that is to be the last one. `None`: now.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// An attempt is about to be sent. `None` if it must not be sent.
    pub(super) fn begin(&mut self) -> Option<AttemptBegun> {
        if self.cleaning || self.spoilt {
            return None;
        }
        let held_before = self.may_hold;
        self.overlapped = self.in_flight > 0;
        self.alone = !held_before && !self.overlapped && self.late.is_none();
        self.in_flight += 1;
        self.may_hold = true;
        Some(AttemptBegun { held_before })
    }

    /// An attempt was answered. Or it never will be and may arrive until `until`; `None`: it was
    /// never sent.
    pub(super) fn answered(
        &mut self,
        begun: AttemptBegun,
        answer: Option<&Result<AttemptOutcome, Abstention>>,
        until: Option<Instant>,
    ) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let unsure = self.overlapped || self.in_flight > 0 || self.late.is_some();
        match answer {
            Some(Ok(AttemptOutcome::Granted { .. })) => {
                self.may_hold = true;
                self.raced |= self.cleaning;
            }
            // It covers everything sent before it, but nothing that is still on its way.
            Some(Ok(AttemptOutcome::Busy { .. })) => self.may_hold = unsure,
            Some(Err(abstention)) if !abstention.may_have_run() => {
                self.may_hold = begun.held_before || unsure;
            }
            Some(Ok(AttemptOutcome::Queued { .. }) | Err(_)) | None => match until {
                Some(_) => self.late = self.late.max(until),
                None => self.may_hold = begun.held_before || unsure,
            },
        }
    }

    /// Marks it as being cleaned. Returns whether it was not marked before.
    pub(super) fn clean(&mut self) -> bool {
        !std::mem::replace(&mut self.cleaning, true)
    }

    /// A release is about to be sent, by the task that cleans it.
    pub(super) fn releasing(&mut self) {
        self.raced = false;
    }

    /// The release sent at `sent` was answered. Returns whether another one must follow.
    pub(super) fn released(&mut self, outcome: ReleaseOutcome, sent: Instant) -> bool {
        let proof = self.alone && outcome == ReleaseOutcome::Released;
        if proof {
            (self.raced, self.late) = (false, None);
            self.found = self.in_flight > 0;
        }
        self.late = self.late.filter(|until| *until > sent);
        self.due = self.late;
        let again = self.raced || self.in_flight > 0 || self.late.is_some();
        if !again {
            self.forgotten();
        }
        again
    }

    /// Whether nothing is left although another release was due, because the previous one found the
    /// attempt under way.
    pub(super) fn is_settled(&mut self) -> bool {
        let settled = self.found && self.in_flight == 0;
        if settled {
            self.forgotten();
        }
        settled
    }

    /// A release failed.
    pub(super) fn not_released(&mut self, abstention: &Abstention) {
        self.spoilt |= abstention.may_have_run();
    }

    /// The node holds nothing of it, and nothing is under way.
    pub(super) fn forgotten(&mut self) {
        let (in_flight, spoilt) = (self.in_flight, self.spoilt);
        *self = Self {
            in_flight,
            spoilt,
            ..Self::default()
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const RELEASED: ReleaseOutcome = ReleaseOutcome::Released;
    const NOT_HELD: ReleaseOutcome = ReleaseOutcome::NotHeld;

    fn granted() -> Result<AttemptOutcome, Abstention> {
        Ok(AttemptOutcome::Granted { token: None })
    }

    fn held() -> Result<AttemptOutcome, Abstention> {
        Ok(AttemptOutcome::Busy { remaining: None })
    }

    fn soon() -> Option<Instant> {
        Some(Instant::now() + Duration::from_secs(1))
    }

    /// One attempt under way on a node that is being cleaned.
    fn in_flight() -> (NodeHold, AttemptBegun) {
        let mut hold = NodeHold::default();
        let begun = hold.begin().unwrap();
        assert!(hold.clean() && !hold.clean() && hold.begin().is_none());
        hold.releasing();
        (hold, begun)
    }

    #[test]
    fn what_was_granted_while_a_release_was_on_its_way_is_released_again() {
        for (outcome, again) in [(NOT_HELD, true), (RELEASED, false)] {
            let (mut hold, begun) = in_flight();
            hold.answered(begun, Some(&granted()), soon());
            assert_eq!(hold.released(outcome, Instant::now()), again, "{outcome:?}");
            assert_eq!(hold.is_clean(), !again);
        }
        let (mut hold, begun) = in_flight();
        hold.answered(begun, Some(&held()), soon());
        assert!(!hold.released(NOT_HELD, Instant::now()), "it left nothing");
    }

    #[test]
    fn a_release_that_found_what_is_under_way_is_the_last_one() {
        for answer in [granted(), Err(Abstention::void("no answer"))] {
            let (mut hold, begun) = in_flight();
            assert!(hold.released(RELEASED, Instant::now()) && !hold.is_settled());
            hold.answered(begun, Some(&answer), soon());
            assert!(hold.is_settled() && hold.is_clean());
        }
        // It may have found an earlier hold.
        let mut hold = NodeHold::unknown();
        let begun = hold.begin().unwrap();
        assert!(hold.clean());
        hold.releasing();
        assert!(hold.released(RELEASED, Instant::now()));
        hold.answered(begun, Some(&granted()), soon());
        assert!(!hold.is_settled() && !hold.is_clean());
    }

    /// If two attempts were under way together, it is unknown which the node ran last.
    #[test]
    fn answers_of_attempts_that_overlapped_clear_nothing() {
        let not_run = Err(Abstention::not_asked("refused"));
        for first_answer in [held(), not_run] {
            let mut hold = NodeHold::default();
            let (first, second) = (hold.begin().unwrap(), hold.begin().unwrap());
            hold.answered(second, Some(&granted()), soon());
            hold.answered(first, Some(&first_answer), soon());
            assert!(!hold.is_clean(), "{first_answer:?}");
        }
    }

    /// Expiry clears the overlap, but not the attempts under way.
    #[test]
    fn what_is_under_way_when_the_lease_lapses_may_hold_the_node() {
        let mut hold = NodeHold::default();
        let (first, _second) = (hold.begin().unwrap(), hold.begin().unwrap());
        hold.forgotten();
        hold.answered(first, Some(&held()), soon());
        assert!(hold.may_hold && !hold.is_clean());
    }

    #[test]
    fn what_was_never_sent_cannot_arrive() {
        let mut hold = NodeHold::default();
        let begun = hold.begin().unwrap();
        hold.answered(begun, None, None);
        assert!(hold.is_clean());
    }

    #[test]
    fn an_attempt_that_did_not_run_changes_nothing() {
        let not_run = || Err(Abstention::not_asked("refused"));
        let mut hold = NodeHold::default();
        let begun = hold.begin().unwrap();
        hold.answered(begun, Some(&not_run()), soon());
        assert!(hold.is_clean(), "it cannot arrive later either");
        let begun = hold.begin().unwrap();
        hold.answered(begun, Some(&granted()), soon());
        for (answer, until) in [(Some(not_run()), soon()), (None, None)] {
            let begun = hold.begin().unwrap();
            hold.answered(begun, answer.as_ref(), until);
            assert!(!hold.is_clean(), "what was granted before is there");
        }
    }

    #[test]
    fn a_release_at_the_moment_until_which_an_attempt_may_arrive_is_the_last_one() {
        let (mut hold, begun) = in_flight();
        let until = Instant::now() + Duration::from_secs(1);
        hold.answered(begun, None, Some(until));
        assert!(hold.released(NOT_HELD, until - Duration::from_nanos(1)));
        assert_eq!(hold.due(), Some(until));
        assert!(!hold.released(NOT_HELD, until) && hold.is_clean());
    }
}
