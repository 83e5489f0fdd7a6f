//! Renders the verdict as a table for people.

use std::fmt::{self, Display, Formatter};

use crate::property::{Judgement, Outcome, Property};

use crate::verdict::Verdict;

impl Display for Verdict {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.head(f)?;
        for judgement in &self.judgements {
            let word = match judgement.outcome {
                Outcome::Passed => "passed",
                Outcome::Failed => "FAILED",
                Outcome::NotJudged => "-",
            };
            let details = self.details(judgement);
            let line = format!("{:<20}  {word:<6}  {details}", judgement.property);
            writeln!(f, "{}", line.trim_end())?;
        }
        for effect in &self.outage.verbs {
            let (outage, rate) = (&effect.outage, &effect.double_grants);
            writeln!(
                f,
                "after {} {}: double grants {:.1} per 1,000 (95 %: {:.1} to {:.1}), outage p50 {}, p99 {}, max {}",
                rate.trials,
                effect.verb,
                rate.per_1000,
                rate.low_per_1000,
                rate.high_per_1000,
                time(outage.p50_ns),
                time(outage.p99_ns),
                time(outage.max_ns),
            )?;
        }
        for violation in self.violations() {
            writeln!(f, "! {}: {}", violation.property, violation.text)?;
        }
        Ok(())
    }
}

impl Verdict {
    fn head(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let facts = &self.facts;
        writeln!(
            f,
            "{} records of {} workers in {}: {} attempts for {} locks, {} granted, {} failed, {} open; {} open uses, {} faults, {} torn files",
            facts.records,
            facts.workers,
            time(facts.until_ns.saturating_sub(facts.from_ns)),
            facts.attempts,
            facts.locks,
            facts.granted,
            facts.failed,
            facts.open_attempts,
            facts.open_uses,
            facts.faults,
            facts.torn,
        )
    }

    /// How much was checked and how bad the result is, in a few words.
    fn details(&self, judgement: &Judgement) -> String {
        let overlap = |of: &super::OverlapCount| {
            let (count, longest, total) = (of.count, time(of.longest_ns), time(of.total_ns));
            format!(
                "{count} in {}, longest {longest}, total {total}",
                of.checked
            )
        };
        let (fenced, after, signal) = (&self.fenced, &self.after_end, &self.loss_signal);
        match judgement.property {
            Property::ValidityOverlap => overlap(&self.validity),
            Property::UseOverlap => overlap(&self.in_use),
            Property::PermitValidity => overlap(&self.permit_validity),
            Property::PermitUse => overlap(&self.permit_use),
            Property::StaleWrites => format!(
                "{} issued, {} caught, {} missed, of {} writes",
                fenced.stale_issued, fenced.stale_caught, fenced.stale_missed, fenced.writes
            ),
            Property::UseAfterEnd => format!(
                "{} in {}, longest {}, total {}",
                after.uses,
                after.grants,
                time(after.longest_ns),
                time(after.total_ns)
            ),
            Property::LossSignal => format!(
                "{} told, {} early, {} never; late p50 {}, p99 {}, max {}{}",
                signal.lateness.count,
                signal.early,
                signal.unsignalled,
                time(signal.lateness.p50_ns),
                time(signal.lateness.p99_ns),
                time(signal.lateness.max_ns),
                allowed(signal.limit_ns)
            ),
            Property::FairOrder => format!(
                "{} in {} waits for {} fair locks",
                self.order.overtakings, self.order.waits, self.order.fair_locks
            ),
            Property::Outage => format!(
                "longest {} of {}{}",
                time(self.outage.longest_ns),
                self.outage.gaps,
                allowed(self.outage.limit_ns)
            ),
            Property::LostUpdates => self.lost_updates.as_ref().map_or_else(String::new, |lost| {
                format!(
                    "{} of {} with tokens, {} of {} without",
                    lost.checked.lost,
                    lost.checked.acknowledged,
                    lost.unchecked.lost,
                    lost.unchecked.acknowledged
                )
            }),
            _ => format!("{} in {}", judgement.violations, judgement.checked),
        }
    }
}

fn allowed(limit_ns: Option<u64>) -> String {
    limit_ns.map_or_else(String::new, |limit| format!(", allowed {}", time(limit)))
}

/// Nanoseconds in a readable unit.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn time(nanos: u64) -> String {
    let value = nanos as f64;
    match nanos {
        0 => "0".to_owned(),
        1..1_000 => format!("{nanos} ns"),
        1_000..1_000_000 => format!("{:.1} us", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", value / 1e6),
        _ => format!("{:.2} s", value / 1e9),
    }
}
