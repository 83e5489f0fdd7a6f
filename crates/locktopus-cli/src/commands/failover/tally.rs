//! Sums the checker's findings over the pieces of the history.

use std::collections::BTreeMap;

use locktopus_history::{FaultEffect, Property, Quantiles, Rate, Verdict};
use serde::Serialize;

use super::histories::Judged;
use super::incidents::{Incident, Sign};

/// Properties that must hold under any fault.
const ALWAYS: [Property; 4] = [
    Property::WellFormed,
    Property::StaleWrites,
    Property::DuplicateTokens,
    Property::FallingTokens,
];

/// Must hold if the mode guarantees one holder at a time, or if no server forgot anything.
const EXCLUSIVE: Property = Property::ValidityOverlap;

/// The sums.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Tally {
    /// Grants that began while another one was valid.
    pub(super) double_grants: u64,
    pub(super) longest_overlap_ms: u64,
    /// Tokens granted twice, or smaller than an earlier one.
    pub(super) tokens_out_of_order: u64,
    /// Writes with an outdated token that were refused.
    pub(super) stale_writes_refused: u64,
    /// Writes with an outdated token that were accepted.
    pub(super) stale_writes_accepted: u64,
    /// Broken promises.
    pub(super) broken: Vec<String>,
    #[serde(skip)]
    effects: BTreeMap<u64, Effect>,
}

/// The effect of one fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Effect {
    pub(super) outage_ns: Option<u64>,
    pub(super) double_grants: u64,
    pub(super) longest_overlap_ns: u64,
}

/// The effects of all faults of one kind.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) fault: Sign,
    pub(super) seen: u64,
    pub(super) median_outage_ms: u64,
    pub(super) longest_outage_ms: u64,
    /// The rate of faults with a double grant, per 1,000, with its 95 % confidence interval.
    pub(super) double_grants: Rate,
}

impl Tally {
    pub(super) fn add(&mut self, judged: &Judged, exclusive: bool) {
        let (before, both) = (&judged.before, &judged.both);
        let more = |count: fn(&Verdict) -> u64| count(both).saturating_sub(count(before));
        self.double_grants += more(|verdict| verdict.validity.count);
        if both.validity.count > before.validity.count {
            let longest = both.validity.longest_ns / 1_000_000;
            self.longest_overlap_ms = self.longest_overlap_ms.max(longest);
        }
        self.tokens_out_of_order +=
            more(|verdict| verdict.tokens.duplicates + verdict.tokens.falls);
        self.stale_writes_refused += more(|verdict| verdict.fenced.stale_caught);
        self.stale_writes_accepted += more(|verdict| verdict.fenced.stale_missed);
        for violation in both.violations() {
            let property = violation.property;
            let promised = ALWAYS.contains(&property) || exclusive && property == EXCLUSIVE;
            if promised && violation.count > before.judgement(property).violations {
                self.broken.push(format!("{property}: {}", violation.text));
            }
        }
        for effect in &both.outage.faults {
            let alone = of(&before.outage.faults, effect.at_ns);
            let known = self.effects.entry(effect.at_ns).or_default();
            known.double_grants += effect
                .double_grants
                .saturating_sub(alone.map_or(0, |alone| alone.double_grants));
            known.longest_overlap_ns = known.longest_overlap_ns.max(effect.longest_overlap_ns);
        }
        for effect in &judged.brief.outage.faults {
            let known = self.effects.entry(effect.at_ns).or_default();
            known.outage_ns = known.outage_ns.max(effect.outage_ns);
        }
    }

    pub(super) fn effect(&self, incident: &Incident) -> Effect {
        self.effects
            .get(&incident.at_ns)
            .copied()
            .unwrap_or_default()
    }

    /// One row for each kind of fault seen.
    pub(super) fn rows(&self, incidents: &[Incident]) -> Vec<Row> {
        let row = |fault| {
            let effects: Vec<_> = incidents
                .iter()
                .filter(|incident| incident.sign == fault)
                .map(|incident| self.effect(incident))
                .collect();
            let hits = effects
                .iter()
                .filter(|effect| effect.double_grants > 0)
                .count();
            let outage = Quantiles::of(
                effects
                    .iter()
                    .filter_map(|effect| effect.outage_ns)
                    .collect(),
            );
            (!effects.is_empty()).then(|| Row {
                fault,
                seen: effects.len() as u64,
                median_outage_ms: outage.p50_ns / 1_000_000,
                longest_outage_ms: outage.max_ns / 1_000_000,
                double_grants: Rate::new(hits as u64, effects.len() as u64)
                    .unwrap_or_else(|| unreachable!("a part of them")),
            })
        };
        Sign::ALL.into_iter().filter_map(row).collect()
    }
}

fn of(effects: &[FaultEffect], at_ns: u64) -> Option<&FaultEffect> {
    effects.iter().find(|effect| effect.at_ns == at_ns)
}
