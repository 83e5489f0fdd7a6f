//! Who believes that it holds the lock, and whether that may be.

use super::{Invariant, Judge};
use crate::sim::ask::{Mode, Owner};
use crate::sim::node::Node;
use crate::sim::rules::{MS, Micros};
use crate::sim::wire::Wire;

/// A process believes that it holds the lock.
#[derive(Debug, Clone)]
pub(in crate::sim) struct Belief {
    pub(in crate::sim) process: usize,
    pub(in crate::sim) owner: Owner,
    pub(in crate::sim) mode: Mode,
    pub(in crate::sim) permits: i64,
    /// In true time.
    pub(in crate::sim) until: Micros,
}

impl Judge {
    /// A process begins to believe.
    pub(in crate::sim) fn believes(
        &mut self,
        now: Micros,
        belief: Belief,
        tokens: (i64, i64),
        wire: &Wire,
        node: &Node,
    ) {
        if self.exclusive {
            self.judge_exclusion(now, &belief);
            self.judge_validity(now, &belief.owner, belief.until, wire, node);
        }
        let granted = self.granted.get(&belief.owner).copied();
        // A lease that is kept goes to one after the other, each with the next token of the block.
        let next = self
            .used
            .get(&belief.owner)
            .map_or(granted, |used| Some(used + 1));
        let last = granted.map(|first| first + self.block - 1);
        let known = next == Some(tokens.0) && last.is_some_and(|last| tokens.0 <= last)
            || !belief.mode.has_tokens();
        self.check(known, now, Invariant::TokenOfGrant, || {
            format!(
                "{} has token {}, but was granted {granted:?}, of which {next:?} is next",
                belief.owner, tokens.0
            )
        });
        self.used.insert(belief.owner.clone(), tokens.0);
        let fresh = !self.given_up.contains(&belief.owner);
        self.check(fresh, now, Invariant::ReleaseIsFinal, || {
            format!("{} was given up and holds again", belief.owner)
        });
        self.stalls.believed(belief.until);
        self.beliefs.insert(belief.owner.clone(), belief);
    }

    /// Checks that holders whose beliefs overlap may share the lock.
    fn judge_exclusion(&mut self, now: Micros, belief: &Belief) {
        let others = self.beliefs.values().filter(|other| other.until > now);
        let others: Vec<Belief> = others.cloned().collect();
        if let Some(other) = others
            .iter()
            .find(|other| !other.mode.shares_with(belief.mode))
        {
            self.fails(now, Invariant::MutualExclusion, || {
                format!("{belief:?}, but also {other:?}")
            });
        }
        let held = others.iter().map(|other| other.permits).sum::<i64>() + belief.permits;
        let counted = belief.mode == Mode::Permits;
        self.check(
            !counted || held <= self.total,
            now,
            Invariant::MutualExclusion,
            || format!("{belief:?}, but also {others:?}"),
        );
    }

    /// A process believes longer.
    pub(in crate::sim) fn believes_until(
        &mut self,
        now: Micros,
        owner: &Owner,
        until: Micros,
        wire: &Wire,
        node: &Node,
    ) {
        let Some(belief) = self.beliefs.get_mut(owner) else {
            return;
        };
        belief.until = until;
        self.stalls.believed(until);
        // A renewal whose answer waited for a stopped process may be over already.
        if self.exclusive && until > now {
            self.judge_validity(now, owner, until, wire, node);
        }
    }

    /// Whether the server keeps the lock for as long as its holder believes in it.
    fn judge_validity(
        &mut self,
        now: Micros,
        owner: &Owner,
        until: Micros,
        wire: &Wire,
        node: &Node,
    ) {
        let holders = wire.layout.holders(&node.server).into_iter();
        let holder = holders.filter(|it| !it.over).find(|it| it.owner == *owner);
        let kept = holder
            .and_then(|holder| holder.expires_at)
            .map(|at| node.true_time(at));
        self.check(
            kept.is_some_and(|kept| until <= kept),
            now,
            Invariant::ValidityWithinLease,
            || {
                let show = |at: Micros| format!("{}.{:03} ms", at / MS, at % MS);
                let kept = kept.map_or_else(|| "not held at all".to_owned(), show);
                format!("{owner} believes until {}, the server: {kept}", show(until))
            },
        );
    }

    /// A process does not believe any more.
    pub(in crate::sim) fn disbelieves(&mut self, now: Micros, owner: &Owner) {
        let Some(belief) = self.beliefs.remove(owner) else {
            return;
        };
        let others = self
            .beliefs
            .values()
            .map(|other| other.until)
            .max()
            .unwrap_or(0);
        self.stalls
            .believed_until(belief.until.min(now).max(others));
    }

    /// A process died, and with it its beliefs.
    pub(in crate::sim) fn died(&mut self, now: Micros, process: usize) {
        let dead = self
            .beliefs
            .values()
            .filter(|belief| belief.process == process);
        let dead: Vec<Owner> = dead.map(|belief| belief.owner.clone()).collect();
        dead.iter().for_each(|owner| self.disbelieves(now, owner));
        self.stalls.died(now, process);
    }
}
