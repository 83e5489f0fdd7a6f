//! Judges a history.

mod after_end;
mod facts;
mod fenced;
mod judge;
mod loss_signal;
mod order;
mod outage;
mod overlaps;
mod tokens;

use crate::assemble::assemble;
use crate::leftovers::Leftovers;
use crate::locking_set::LostUpdates;
use crate::options::Options;
use crate::reader::History;
use crate::verdict::Verdict;

/// Checks histories, in O(n log n).
///
/// The [module](super) says what counts as proof.
#[derive(Clone, Debug, Default)]
pub struct Checker {
    options: Options,
    leftovers: Option<Leftovers>,
    lost_updates: Option<LostUpdates>,
}

impl Checker {
    /// A checker with the default [`Options`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how strict it is.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Adds what the runner found at the end. Without it, leftovers are not judged.
    #[must_use]
    pub fn leftovers(mut self, leftovers: Leftovers) -> Self {
        self.leftovers = Some(leftovers);
        self
    }

    /// Adds the result of a [`LockingSet`](super::LockingSet) test. Without it, lost updates are
    /// not judged.
    #[must_use]
    pub fn lost_updates(mut self, lost: LostUpdates) -> Self {
        self.lost_updates = Some(lost);
        self
    }

    /// Judges a history. A malformed one gets a verdict too, which says so and covers the rest.
    #[must_use]
    pub fn check(&self, history: &History) -> Verdict {
        let options = &self.options;
        let all = assemble(history);
        let overlaps = overlaps::check(&all, options);
        let mut verdict = Verdict {
            facts: facts::gather(history, &all),
            judgements: Vec::new(),
            malformed: Vec::new(),
            damage: Vec::new(),
            tokens: tokens::check(&all, options),
            fenced: fenced::check(&all, options),
            after_end: after_end::check(&all, options),
            loss_signal: loss_signal::check(&all, options),
            order: order::check(&all, options),
            outage: outage::check(&all, &overlaps.double_grants, options),
            validity: overlaps.validity,
            in_use: overlaps.in_use,
            permit_validity: overlaps.permit_validity,
            permit_use: overlaps.permit_use,
            leftovers: self.leftovers.clone(),
            lost_updates: self.lost_updates.clone(),
        };
        let damaged = history.damage().iter().filter(|line| !line.torn).count();
        verdict.judgements = judge::judge(&verdict, all.malformed.len() + damaged);
        verdict.malformed = all.malformed;
        verdict.malformed.truncate(options.examples);
        verdict.damage = history.damage().to_vec();
        verdict.damage.truncate(options.examples);
        verdict
    }
}
