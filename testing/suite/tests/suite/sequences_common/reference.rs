//! The expected effect of each call, one after the other.

use std::collections::VecDeque;
use std::fmt::Write as _;

use locktopus::{CounterAction, CounterOutcome};
use locktopus_conformance::Flavour;

use super::calls::{Call, Half, Slot};

/// A lock of some flavour, and the parties that may want it.
#[derive(Debug, Clone)]
pub struct Reference {
    pub flavour: Flavour,
    pub slots: Vec<Slot>,
    /// Time since the start, in ms.
    pub now: u64,
    pub holds: Vec<Hold>,
    pub queue: VecDeque<Place>,
    /// The free permits of a semaphore; the count of a latch.
    pub number: Option<i64>,
    /// After how many ms a rate limiter's permit returns.
    period: Option<u64>,
    /// The permits that were drained and not put back.
    drained: i64,
    /// Permits returned by their period, and were not handed on yet.
    came_back: bool,
    last_count: Option<(CounterAction, CounterOutcome)>,
}

#[derive(Debug, Clone, Copy)]
pub struct Hold {
    pub who: usize,
    pub half: Half,
    pub ends: u64,
}

#[derive(Debug, Clone, Copy)]
pub struct Place {
    pub who: usize,
    pub half: Half,
    pub until: u64,
}

/// The expected answer of a call, and the slots that it must hand the lock to, in this order.
#[derive(Debug)]
pub struct Said {
    pub answer: Answer,
    pub handed: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// `again`: it was the holder already.
    Granted {
        again: bool,
    },
    Held,
    /// An error: the request exceeds all permits, or the total was never set.
    TooFew,
    Queued {
        ahead: u64,
    },
    Extended,
    Missing,
    TakenOver,
    Released,
    NotHeld,
    /// The slots whose holds were ended.
    Evicted(Vec<usize>),
    Counted(CounterOutcome),
    /// Only the state.
    Shown,
}

impl Reference {
    pub fn new(flavour: Flavour, slots: Vec<Slot>) -> Self {
        Self {
            flavour,
            slots,
            now: 0,
            holds: Vec::new(),
            queue: VecDeque::new(),
            number: None,
            period: None,
            drained: 0,
            came_back: false,
            last_count: None,
        }
    }

    /// The slots, as a failure shows them.
    pub fn slots(&self) -> String {
        let mut text = String::new();
        for (name, slot) in ('A'..).zip(&self.slots) {
            let _ = writeln!(text, "  {name}: {slot:?}");
        }
        text
    }

    /// Whether the contract defines an answer to this call: repetitions of an acquisition are
    /// equal, and a waiter does not hold the lock yet.
    pub fn permits(&self, call: &Call) -> bool {
        let mut present = self.clone();
        present.expire();
        let place = |who| present.queue.iter().find(|place| place.who == who);
        match *call {
            Call::Attempt { who, half, waits } => match place(who) {
                Some(place) => waits && place.half == half,
                None => {
                    !waits
                        || present
                            .holds
                            .iter()
                            .all(|hold| hold.who != who || hold.half == half)
                }
            },
            Call::Release { who, half, .. } => place(who).is_none_or(|place| place.half == half),
            Call::CountAgain => self.last_count.is_some(),
            _ => true,
        }
    }

    pub fn call(&mut self, call: &Call) -> Said {
        let mut handed = Vec::new();
        if let Call::Pass(millis) = call {
            self.now += millis;
        } else {
            self.expire();
        }
        let answer = match *call {
            Call::Attempt { who, half, waits } => self.attempt(who, half, waits, &mut handed),
            Call::Extend { who, half, lease } => self.extend(who, half, lease),
            Call::Release { who, half, .. } => self.release(who, half, &mut handed),
            Call::Evict => self.evict(&mut handed),
            Call::Count(action) => {
                let outcome = self.count(action);
                if action != CounterAction::Read {
                    self.last_count = Some((action, outcome));
                }
                self.counted(action, outcome, &mut handed)
            }
            Call::CountAgain => match self.last_count {
                Some((action, outcome)) => self.counted(action, outcome, &mut handed),
                None => Answer::Shown,
            },
            Call::Look | Call::Pass(_) => Answer::Shown,
        };
        Said { answer, handed }
    }

    fn attempt(&mut self, who: usize, half: Half, waits: bool, handed: &mut Vec<usize>) -> Answer {
        let slot = self.slots[who];
        if self.extended(who, half, slot.lease) {
            return Answer::Granted { again: true };
        }
        if !self.has_enough(who) {
            // Permits that a period returned go to waiters.
            if std::mem::take(&mut self.came_back) {
                self.hand_on(None, handed);
            }
            return Answer::TooFew;
        }
        // Waiters ahead come first, if time has freed something.
        self.hand_on(Some(who), handed);
        let answer = if self.is_next(who) && self.admits(who, half) {
            self.queue.retain(|place| place.who != who);
            self.grant(who, half);
            self.hand_on(None, handed);
            Answer::Granted { again: false }
        } else if waits {
            let until = self.now + slot.keep;
            match self.queue.iter_mut().find(|place| place.who == who) {
                Some(place) => place.until = until,
                None => self.queue.push_back(Place { who, half, until }),
            }
            let ahead = self.ahead(who) as u64;
            Answer::Queued { ahead }
        } else {
            Answer::Held
        };
        self.came_back = false;
        answer
    }

    fn extend(&mut self, who: usize, half: Half, lease: u64) -> Answer {
        if self.extended(who, half, lease) {
            Answer::Extended
        } else if self.is_exclusive(half) && !self.holds.is_empty() {
            Answer::TakenOver
        } else {
            Answer::Missing
        }
    }

    fn release(&mut self, who: usize, half: Half, handed: &mut Vec<usize>) -> Answer {
        let waited = self.queue.len();
        self.queue.retain(|place| place.who != who);
        let left = self.queue.len() < waited;
        let held = |hold: &Hold| hold.who == who && hold.half == half;
        if let Some(index) = self.holds.iter().position(held) {
            let hold = self.holds.remove(index);
            self.give(hold);
            self.hand_on(None, handed);
            return Answer::Released;
        }
        if left || std::mem::take(&mut self.came_back) {
            self.hand_on(None, handed);
        }
        Answer::NotHeld
    }

    fn evict(&mut self, handed: &mut Vec<usize>) -> Answer {
        let holds = std::mem::take(&mut self.holds);
        for hold in &holds {
            self.give(*hold);
        }
        self.hand_on(None, handed);
        Answer::Evicted(holds.iter().map(|hold| hold.who).collect())
    }

    fn count(&mut self, action: CounterAction) -> CounterOutcome {
        let held = self.held();
        let before = self.number;
        let mut value = None;
        match action {
            CounterAction::Read => {}
            CounterAction::Initialise(_) | CounterAction::Rate { keep: true, .. }
                if before.is_some() => {}
            CounterAction::Rate { permits, per, .. } => {
                let per = u64::try_from(per.as_millis()).unwrap_or(u64::MAX);
                self.number = Some(permits.cast_signed() - held);
                self.period = Some(per);
                for hold in &mut self.holds {
                    hold.ends = hold.ends.min(self.now + per);
                }
            }
            CounterAction::Initialise(total) | CounterAction::Resize(total) => {
                self.number = Some(total.cast_signed() - held);
                self.drained = 0;
            }
            CounterAction::Add(more) => {
                self.number = Some(before.unwrap_or(-held) + more);
                self.drained = match before {
                    Some(_) => self.drained - more.clamp(0, self.drained),
                    None => 0,
                };
            }
            CounterAction::Drain => {
                let free = before.unwrap_or(0).max(0);
                self.drained += free;
                self.number = before.map(|number| number - free);
                value = Some(free);
            }
            CounterAction::CountDown => {
                self.number = before.map(|count| count - 1).filter(|count| *count > 0);
                value = Some(self.number.unwrap_or(0));
            }
            CounterAction::Delete => {
                (self.number, self.period) = (None, None);
                self.holds.clear();
            }
        }
        CounterOutcome {
            value: value.or(self.number),
            changed: self.number != before,
        }
    }

    fn counted(
        &mut self,
        action: CounterAction,
        outcome: CounterOutcome,
        handed: &mut Vec<usize>,
    ) -> Answer {
        // A smaller total may leave free permits to those behind a waiter that wants more.
        let resized = matches!(
            action,
            CounterAction::Resize(_) | CounterAction::Rate { .. }
        );
        let changed = (outcome.changed || resized) && action != CounterAction::Delete;
        if changed || action != CounterAction::Read && std::mem::take(&mut self.came_back) {
            self.hand_on(None, handed);
        }
        Answer::Counted(outcome)
    }

    /// Drops holds and places that have expired.
    fn expire(&mut self) {
        let now = self.now;
        let over = self
            .holds
            .extract_if(.., |hold| hold.ends <= now)
            .collect::<Vec<_>>();
        for hold in over {
            self.came_back |= self.number.is_some();
            self.give(hold);
        }
        self.queue.retain(|place| place.until > now);
    }

    /// Extends a hold, never shortens it; false if there is none. Permits that a period returns
    /// keep their time.
    fn extended(&mut self, who: usize, half: Half, lease: u64) -> bool {
        let ends = self.now + lease;
        let held = self
            .holds
            .iter_mut()
            .find(|hold| hold.who == who && hold.half == half);
        let keeps = self.period.is_some();
        held.map(|hold| {
            hold.ends = if keeps {
                hold.ends
            } else {
                hold.ends.max(ends)
            }
        })
        .is_some()
    }

    fn grant(&mut self, who: usize, half: Half) {
        let lasts = self.period.unwrap_or(self.slots[who].lease);
        let (permits, ends) = (self.permits_of(who), self.now + lasts);
        self.holds.push(Hold { who, half, ends });
        if let Some(free) = &mut self.number {
            *free -= permits;
        }
    }

    fn give(&mut self, hold: Hold) {
        let permits = self.permits_of(hold.who);
        if let Some(free) = &mut self.number {
            *free += permits;
        }
    }

    /// Hands the lock to the first waiters that can have it, but neither to `before` nor to those
    /// behind it. Skips waiters for more permits than exist.
    fn hand_on(&mut self, before: Option<usize>, handed: &mut Vec<usize>) {
        let next = |this: &Self| this.queue.iter().position(|it| this.has_enough(it.who));
        while let Some(index) = next(self) {
            let Place { who, half, .. } = self.queue[index];
            if before == Some(who) || !self.admits(who, half) {
                break;
            }
            self.queue.remove(index);
            self.grant(who, half);
            handed.push(who);
        }
    }

    /// Whether the present holders leave room.
    fn admits(&self, who: usize, half: Half) -> bool {
        if self.flavour.is_counted() {
            return self.number.is_some_and(|free| free >= self.permits_of(who));
        }
        match half {
            Half::Whole => self.holds.is_empty(),
            // A writer may also read.
            Half::Read => self
                .holds
                .iter()
                .all(|hold| hold.half == Half::Read || hold.who == who),
        }
    }

    /// How many wait ahead; none if it holds the other half.
    fn ahead(&self, who: usize) -> usize {
        if self.holds.iter().any(|hold| hold.who == who) {
            return 0;
        }
        let place = self.queue.iter().position(|place| place.who == who);
        place.unwrap_or(self.queue.len())
    }

    /// Whether all waiters ahead want more permits than exist.
    fn is_next(&self, who: usize) -> bool {
        let mut ahead = self.queue.iter().take(self.ahead(who));
        ahead.all(|place| !self.has_enough(place.who))
    }

    /// Whether it requests no more permits than exist, free or not.
    fn has_enough(&self, who: usize) -> bool {
        !self.flavour.is_counted() || self.permits_of(who) <= self.total()
    }

    fn held(&self) -> i64 {
        let held = self.holds.iter().map(|hold| self.permits_of(hold.who));
        held.sum()
    }

    /// The total of permits; zero if it was never set.
    fn total(&self) -> i64 {
        self.number
            .map_or(0, |free| free + self.held() + self.drained)
    }

    fn permits_of(&self, who: usize) -> i64 {
        i64::from(self.slots[who].permits)
    }

    pub fn is_exclusive(&self, half: Half) -> bool {
        half == Half::Whole && !self.flavour.is_counted()
    }
}
