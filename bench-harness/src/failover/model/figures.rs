//! The counts of a cell.

use locktopus_history::{OverlapCount, Quantiles, Rate, SetLoss};
use serde::{Deserialize, Serialize};

/// The counts of a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// Attempts.
    pub attempts: u64,
    /// Attempts that were granted.
    pub granted: u64,
    /// Faults that were injected.
    pub faults: u64,
    /// Faults after which a lock was granted while another holder still believed in it.
    pub faults_with_double_grants: u64,
    /// Overlapping validities.
    pub validity: Overlap,
    /// Overlapping uses.
    pub in_use: Overlap,
    /// Tokens that were granted twice.
    pub duplicate_tokens: u64,
    /// Tokens that are certainly smaller than an earlier one, although the order is promised.
    pub falling_tokens: u64,
    /// Tokens out of order where no order is promised, not counting the ones above. Older files
    /// count these with the rest.
    #[serde(default)]
    pub unordered_tokens: u64,
    /// Writes to the resource that checks tokens.
    pub writes: Writes,
    /// Uses that continued after the lease had ended.
    pub uses_after_end: u64,
    /// The longest of them, in nanoseconds after the end.
    pub longest_after_end_ns: u64,
    /// Extensions that were reported after the end.
    pub extensions_after_end: u64,
    /// Loss signals.
    pub signals: Signals,
    /// The longest time without a grant after each fault.
    pub outage: Spread,
    /// Keys, waiters and tasks left at the end.
    pub leftovers: u64,
    /// Waits in the queues of fair locks.
    pub fair_waits: u64,
    /// Grants of fair locks out of order.
    pub out_of_order: u64,
    /// Grants of permits that were compared with the limit.
    pub permits_checked: u64,
    /// Permits valid beyond the limit.
    pub permits_over: u64,
    /// Updates lost where only the lock protected them.
    pub lost_unchecked: Lost,
    /// Updates lost where the resource checked tokens as well.
    pub lost_checked: Lost,
}

/// Overlaps of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overlap {
    /// How many were compared.
    pub checked: u64,
    /// Overlapping pairs.
    pub count: u64,
    /// The longest, in nanoseconds.
    pub longest_ns: u64,
}

/// Writes to a resource that checks tokens; entering it counts as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Writes {
    /// All writes.
    pub all: u64,
    /// Stale writes.
    pub stale: u64,
    /// Stale writes that were rejected.
    pub caught: u64,
    /// Stale writes that were accepted.
    pub missed: u64,
    /// Writes that were rejected although no later holder can have written.
    pub good_refused: u64,
}

/// Loss signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signals {
    /// How long after the end of validity they came.
    pub lateness: Spread,
    /// Holders that continued and never got a signal.
    pub never: u64,
}

/// Quantiles of a set of durations, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// Number of durations.
    pub count: u64,
    /// The median.
    pub p50_ns: u64,
    /// The 99th percentile.
    pub p99_ns: u64,
    /// The maximum.
    pub max_ns: u64,
}

/// Updates that were acknowledged and then lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lost {
    /// Acknowledged updates.
    pub done: u64,
    /// Acknowledged updates that another writer overwrote.
    pub lost: u64,
}

impl Figures {
    /// All tokens smaller than an earlier one, promised or not.
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
