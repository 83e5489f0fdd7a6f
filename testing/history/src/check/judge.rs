//! Turns numbers into outcomes.

use crate::property::{Judgement, Outcome, Property};

use crate::verdict::{OverlapCount, Verdict};

/// One judgement for each property; `malformed` counts impossible records and lines.
pub(super) fn judge(verdict: &Verdict, malformed: usize) -> Vec<Judgement> {
    Property::ALL
        .into_iter()
        .map(|property| {
            let (violations, checked) = numbers(verdict, property, malformed as u64);
            let outcome = match (violations, checked) {
                (1.., _) => Outcome::Failed,
                (0, 0) => Outcome::NotJudged,
                (0, _) => Outcome::Passed,
            };
            Judgement {
                property,
                outcome,
                violations,
                checked,
            }
        })
        .collect()
}

/// How many violations and how many checks a property has.
fn numbers(verdict: &Verdict, property: Property, malformed: u64) -> (u64, u64) {
    let of = |overlap: &OverlapCount| (overlap.count - overlap.excused, overlap.checked);
    let (tokens, fenced) = (&verdict.tokens, &verdict.fenced);
    match property {
        Property::WellFormed => (malformed, verdict.facts.records as u64),
        Property::ValidityOverlap => of(&verdict.validity),
        Property::UseOverlap => of(&verdict.in_use),
        Property::PermitValidity => of(&verdict.permit_validity),
        Property::PermitUse => of(&verdict.permit_use),
        Property::DuplicateTokens => (tokens.duplicates, tokens.checked),
        Property::FallingTokens => (tokens.falls, tokens.checked),
        Property::StaleWrites => (fenced.stale_missed, fenced.accepted),
        Property::GoodWrites => (fenced.good_rejected, fenced.accepted + fenced.rejected),
        Property::UseAfterEnd => (verdict.after_end.uses_over_limit, verdict.after_end.grants),
        Property::ExtensionAfterEnd => (verdict.after_end.extensions, verdict.after_end.grants),
        Property::LossSignal => loss_signal(verdict),
        Property::FairOrder => (verdict.order.overtakings, verdict.order.waits),
        Property::Leftovers => match &verdict.leftovers {
            Some(left) => (left.count() as u64, 1),
            None => (0, 0),
        },
        Property::Outage => match verdict.outage.limit_ns {
            Some(_) => (verdict.outage.over_limit, verdict.outage.gaps),
            None => (0, 0),
        },
        Property::LostUpdates => match &verdict.lost_updates {
            // A refused element that is in the set shows that the resource does not check.
            Some(lost) => (
                lost.checked.lost + lost.checked.surplus,
                lost.checked.acknowledged,
            ),
            None => (0, 0),
        },
    }
}

fn loss_signal(verdict: &Verdict) -> (u64, u64) {
    let signals = &verdict.loss_signal;
    match signals.limit_ns {
        Some(_) => (
            signals.late + signals.unsignalled,
            signals.lateness.count as u64 + signals.unsignalled,
        ),
        None => (0, 0),
    }
}
