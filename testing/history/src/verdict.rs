//! The findings of the checker.

use serde::Serialize;

use crate::reader::Damage;

use crate::property::{Judgement, Outcome, Property};

use crate::leftovers::Leftovers;

use crate::locking_set::LostUpdates;

use crate::malformed::Malformed;

use crate::offence::Offence;

use crate::quantiles::Quantiles;

use crate::wilson::Rate;

/// All findings in a history. Prints as a table.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Verdict {
    /// The contents of the history.
    pub facts: Facts,
    /// Each property, in the order of [`Property::ALL`].
    pub judgements: Vec<Judgement>,
    /// Records that contradict others, up to the limit of examples.
    pub malformed: Vec<Malformed>,
    /// Lines that are not records, up to the limit of examples.
    pub damage: Vec<Damage>,
    /// Overlaps of validity.
    pub validity: OverlapCount,
    /// Overlaps of actual use.
    #[serde(rename = "use")]
    pub in_use: OverlapCount,
    /// Permits valid beyond the limit.
    pub permit_validity: OverlapCount,
    /// Permits in use beyond the limit.
    pub permit_use: OverlapCount,
    /// Fencing tokens.
    pub tokens: Tokens,
    /// Writes to resources that check tokens.
    pub fenced: FencedWrites,
    /// Actions after a loss or the end of validity.
    pub after_end: AfterEnd,
    /// Signals of losses.
    pub loss_signal: Lateness,
    /// Order of fair locks.
    pub order: Order,
    /// Periods without grants, and the effect of each fault.
    pub outage: Outage,
    /// Leftovers at the end, if the runner looked for them.
    pub leftovers: Option<Leftovers>,
    /// Lost updates, if the runner counted them.
    pub lost_updates: Option<LostUpdates>,
}

/// The contents of a history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Facts {
    /// Records.
    pub records: usize,
    /// Workers.
    pub workers: usize,
    /// Locks.
    pub locks: usize,
    /// Attempts.
    pub attempts: usize,
    /// Attempts that were granted.
    pub granted: usize,
    /// Grants whose validity had ended when they were received.
    pub spent: usize,
    /// Attempts that failed.
    pub failed: usize,
    /// Attempts without an answer, of workers that were cut off.
    pub open_attempts: usize,
    /// Uses without an end, of workers that were cut off.
    pub open_uses: usize,
    /// Faults.
    pub faults: usize,
    /// Files that end in the middle of a line.
    pub torn: usize,
    /// First record, in nanoseconds.
    pub from_ns: u64,
    /// Last record, in nanoseconds.
    pub until_ns: u64,
}

/// Overlaps of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OverlapCount {
    /// Validities or uses that were compared.
    pub checked: u64,
    /// Pairs that overlap, or grants beyond the limit.
    pub count: u64,
    /// Those that exist only because a use continued for a moment, or because its worker was
    /// stalled: see [`Options::use_limit`](crate::Options::use_limit). Validities have none.
    pub excused: u64,
    /// The longest, in nanoseconds.
    pub longest_ns: u64,
    /// Total length, in nanoseconds; time counts once for each lock.
    pub total_ns: u64,
    /// The longest ones.
    pub examples: Vec<Offence>,
}

/// Fencing tokens of exclusive grants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Tokens {
    /// Grants with a token.
    pub checked: u64,
    /// Grants with the token of an earlier grant. If exclusion is not promised, the earlier one
    /// must certainly have been given before, as for falls.
    pub duplicates: u64,
    /// Grants with a smaller token than one certainly given before. That one was received before
    /// they were requested or, if exclusion is promised, before they were received while still
    /// valid.
    pub falls: u64,
    /// If exclusion is not promised: further grants with the token of another one, or with a
    /// smaller one than a grant received before them, while they were in flight. Measured, not a
    /// violation.
    pub unordered: u64,
    /// Some of the duplicates.
    pub duplicate_examples: Vec<Offence>,
    /// Some of the falls.
    pub fall_examples: Vec<Offence>,
    /// Some of the unordered ones.
    pub unordered_examples: Vec<Offence>,
}

/// Writes to resources that check tokens.
///
/// A write is stale if, before it was issued, the resource had accepted a write of a later holder,
/// or one with a larger token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FencedWrites {
    /// All writes.
    pub writes: u64,
    /// Writes that were made.
    pub accepted: u64,
    /// Writes that were refused.
    pub rejected: u64,
    /// Writes without an answer.
    pub unknown: u64,
    /// Stale writes: caught, missed and unanswered ones.
    pub stale_issued: u64,
    /// Stale writes that were refused.
    pub stale_caught: u64,
    /// Stale writes that were made.
    pub stale_missed: u64,
    /// Writes refused although no later holder can have written.
    pub good_rejected: u64,
    /// Some of the missed ones.
    pub missed_examples: Vec<Offence>,
    /// Some of the good ones.
    pub good_examples: Vec<Offence>,
}

/// Actions of holders after the lock had ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AfterEnd {
    /// Grants that were checked.
    pub grants: u64,
    /// Uses that continued after the loss, the end of validity or the release.
    pub uses: u64,
    /// Those that continued for longer than allowed while their worker was not stalled.
    pub uses_over_limit: u64,
    /// The longest such time, in nanoseconds.
    pub longest_ns: u64,
    /// The total of such times, in nanoseconds.
    pub total_ns: u64,
    /// Extensions reported after the loss, the end of validity or the release.
    pub extensions: u64,
    /// The longest uses over the limit.
    pub use_examples: Vec<Offence>,
    /// Some of the extensions.
    pub extension_examples: Vec<Offence>,
}

/// When losses were signalled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Lateness {
    /// Time from the end of validity to the signal; 0 for those that came before.
    pub lateness: Quantiles,
    /// Signals that came before the end of validity.
    pub early: u64,
    /// Holders that continued after the end of validity without a signal, although they were not
    /// stalled for that long.
    pub unsignalled: u64,
    /// The limit, in nanoseconds.
    pub limit_ns: Option<u64>,
    /// Signals that came later than the limit, although their worker was not stalled for that long.
    pub late: u64,
    /// The latest ones.
    pub examples: Vec<Offence>,
}

/// Order of fair locks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Order {
    /// Locks that have to be fair.
    pub fair_locks: u64,
    /// Waits in their queues.
    pub waits: u64,
    /// Further waits during a fault or a stall that may have cost the place: not judged.
    pub disturbed: u64,
    /// Grants to attempts that started when another one was known to be waiting, and still waited.
    pub overtakings: u64,
    /// Some of them.
    pub examples: Vec<Offence>,
}

/// Times when a lock was wanted and not granted.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Outage {
    /// Periods without a grant.
    pub gaps: u64,
    /// The longest, in nanoseconds.
    pub longest_ns: u64,
    /// The limit, in nanoseconds.
    pub limit_ns: Option<u64>,
    /// Periods longer than the limit, without the time when all waiters were stalled.
    pub over_limit: u64,
    /// The longest ones.
    pub examples: Vec<Offence>,
    /// The effect of each fault, until the next one of the same verb.
    pub faults: Vec<FaultEffect>,
    /// The same for each verb.
    pub verbs: Vec<VerbEffect>,
}

/// The effect of a fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FaultEffect {
    /// Its time, in nanoseconds.
    pub at_ns: u64,
    /// Its verb.
    pub verb: String,
    /// Its target.
    pub target: String,
    /// The longest time after it that a wanted lock was not granted, in nanoseconds; `None` if no
    /// lock was wanted.
    pub outage_ns: Option<u64>,
    /// Grants that started while another one was valid, or beyond the permits.
    pub double_grants: u64,
    /// The longest such overlap, in nanoseconds.
    pub longest_overlap_ns: u64,
}

/// The effect of all faults of one verb.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct VerbEffect {
    /// The verb.
    pub verb: String,
    /// Outages of faults during which a lock was wanted.
    pub outage: Quantiles,
    /// Faults with at least one double grant, among all.
    pub double_grants: Rate,
}

/// A property that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Violation {
    /// The property.
    pub property: Property,
    /// How often.
    pub count: u64,
    /// In words, with the worst example.
    pub text: String,
}

impl Verdict {
    /// The judgement of one property.
    #[must_use]
    pub fn judgement(&self, property: Property) -> Judgement {
        self.judgements
            .iter()
            .copied()
            .find(|judgement| judgement.property == property)
            .unwrap_or(Judgement {
                property,
                outcome: Outcome::NotJudged,
                violations: 0,
                checked: 0,
            })
    }

    /// Whether the property was tested and held.
    #[must_use]
    pub fn passed(&self, property: Property) -> bool {
        self.judgement(property).outcome == Outcome::Passed
    }

    /// Every property that does not hold.
    #[must_use]
    pub fn violations(&self) -> Vec<Violation> {
        self.judgements
            .iter()
            .filter(|judgement| judgement.outcome == Outcome::Failed)
            .map(|judgement| self.violation(judgement))
            .collect()
    }

    fn violation(&self, judgement: &Judgement) -> Violation {
        let property = judgement.property;
        let mut text = format!("{} {}", judgement.violations, property.failure());
        if let Some(worst) = self.worst(property) {
            text = format!("{text}; {worst}");
        }
        Violation {
            property,
            count: judgement.violations,
            text,
        }
    }

    /// The worst example of a violation, in words.
    fn worst(&self, property: Property) -> Option<String> {
        let examples = match property {
            Property::WellFormed => {
                let damage = self.damage.iter().find(|damage| !damage.torn);
                let first = self.malformed.first().map(ToString::to_string);
                return first.or_else(|| damage.map(ToString::to_string));
            }
            Property::Leftovers => {
                let left = self.leftovers.as_ref()?;
                return [&left.keys, &left.waiters, &left.tasks]
                    .into_iter()
                    .find_map(|names| names.first().cloned());
            }
            Property::LostUpdates => {
                let lost = &self.lost_updates.as_ref()?.checked.lost_elements;
                return lost.first().map(|element| format!("element {element}"));
            }
            Property::ValidityOverlap => &self.validity.examples,
            Property::UseOverlap => &self.in_use.examples,
            Property::PermitValidity => &self.permit_validity.examples,
            Property::PermitUse => &self.permit_use.examples,
            Property::DuplicateTokens => &self.tokens.duplicate_examples,
            Property::FallingTokens => &self.tokens.fall_examples,
            Property::StaleWrites => &self.fenced.missed_examples,
            Property::GoodWrites => &self.fenced.good_examples,
            Property::UseAfterEnd => &self.after_end.use_examples,
            Property::ExtensionAfterEnd => &self.after_end.extension_examples,
            Property::LossSignal => &self.loss_signal.examples,
            Property::FairOrder => &self.order.examples,
            Property::Outage => &self.outage.examples,
        };
        examples.first().map(ToString::to_string)
    }
}
