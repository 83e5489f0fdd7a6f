//! What is counted in a cell.

use locktopus_history::{OverlapCount, Quantiles, Rate, SetLoss};
use serde::{Deserialize, Serialize};

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// Attempts.
    pub attempts: u64,
    /// Attempts that were granted.
    pub granted: u64,
    /// Faults that were done.
    pub faults: u64,
    /// Faults after which somebody was granted a lock while another one believed in it.
    pub faults_with_double_grants: u64,
    /// Validities that overlap.
    pub validity: Overlap,
    /// Uses that overlap.
    pub in_use: Overlap,
    /// Tokens that were granted again.
    pub duplicate_tokens: u64,
    /// Tokens that were smaller than one that was certainly given before, against what is promised.
    pub falling_tokens: u64,
    /// Where no order is promised: further tokens smaller than one that was received before. Older
    /// files have them among the others.
    #[serde(default)]
    pub unordered_tokens: u64,
    /// Writes to the resource that checks tokens.
    pub writes: Writes,
    /// Uses that went on after the end.
    pub uses_after_end: u64,
    /// The longest time by which one did, in nanoseconds.
    pub longest_after_end_ns: u64,
    /// Extensions that were told after the end.
    pub extensions_after_end: u64,
    /// Signals of losses.
    pub signals: Signals,
    /// The longest time without a grant after each fault.
    pub outage: Spread,
    /// Keys, waiters and tasks that were left at the end.
    pub leftovers: u64,
    /// Waits in the queues of fair locks.
    pub fair_waits: u64,
    /// Grants of fair locks out of order.
    pub out_of_order: u64,
    /// Grants of permits that were compared with the limit.
    pub permits_checked: u64,
    /// Permits that were valid beyond the limit.
    pub permits_over: u64,
    /// Updates that were lost where only the lock stood guard.
    pub lost_unchecked: Lost,
    /// Updates that were lost where tokens were checked as well.
    pub lost_checked: Lost,
}

/// Overlaps of one sort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overlap {
    /// What was compared.
    pub checked: u64,
    /// Pairs that overlap.
    pub count: u64,
    /// The longest, in nanoseconds.
    pub longest_ns: u64,
}

/// Writes to a resource that checks tokens; coming in counts as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Writes {
    /// All of them.
    pub all: u64,
    /// Stale ones.
    pub stale: u64,
    /// Stale ones that were refused.
    pub caught: u64,
    /// Stale ones that were done.
    pub missed: u64,
    /// Refused although nobody later can have written.
    pub good_refused: u64,
}

/// Signals of losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signals {
    /// How late they came after the end of validity.
    pub lateness: Spread,
    /// Holders who went on and were never told.
    pub never: u64,
}

/// Quantiles of some durations, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// Half of them are not greater.
    pub p50_ns: u64,
    /// 99 of 100 are not greater.
    pub p99_ns: u64,
    /// The greatest.
    pub max_ns: u64,
}

/// Updates that were answered with success, and gone in the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lost {
    /// Updates that were done.
    pub done: u64,
    /// Those of them that somebody overwrote.
    pub lost: u64,
}

impl Figures {
    /// Tokens smaller than one that was received before, whatever is promised.
    #[must_use]
    pub const fn tokens_out_of_order(&self) -> u64 {
        self.falling_tokens + self.unordered_tokens
    }

    /// Faults with double grants, with the confidence interval of the rate.
    #[must_use]
    pub fn double_grants(&self) -> Option<Rate> {
        Rate::new(self.faults_with_double_grants, self.faults).filter(|rate| rate.trials > 0)
    }
}

impl From<&OverlapCount> for Overlap {
    fn from(found: &OverlapCount) -> Self {
        Self {
            checked: found.checked,
            count: found.count,
            longest_ns: found.longest_ns,
        }
    }
}

impl From<Quantiles> for Spread {
    fn from(of: Quantiles) -> Self {
        Self {
            count: of.count as u64,
            p50_ns: of.p50_ns,
            p99_ns: of.p99_ns,
            max_ns: of.max_ns,
        }
    }
}

impl From<&SetLoss> for Lost {
    fn from(loss: &SetLoss) -> Self {
        Self {
            done: loss.acknowledged,
            lost: loss.lost,
        }
    }
}
