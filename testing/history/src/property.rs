//! The properties to judge.

use std::fmt;

use serde::Serialize;

/// One property that a lock, or its history, must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Property {
    /// The history is possible, and no line of it is damaged.
    WellFormed,
    /// Validities of different holders do not overlap, except those of readers.
    ValidityOverlap,
    /// Critical sections of different holders do not overlap, except those of readers.
    UseOverlap,
    /// No more permits are valid than exist.
    PermitValidity,
    /// No more permits are in use than exist.
    PermitUse,
    /// No two exclusive grants have the same token.
    DuplicateTokens,
    /// Tokens of exclusive grants grow.
    FallingTokens,
    /// A fenced resource accepts no stale write.
    StaleWrites,
    /// A fenced resource rejects no write of the current holder.
    GoodWrites,
    /// No holder uses a lock after its loss or the end of its validity.
    UseAfterEnd,
    /// No lock is extended after its loss, the end of its validity or its release.
    ExtensionAfterEnd,
    /// Losses are signalled in time.
    LossSignal,
    /// Fair locks are granted in order of arrival.
    FairOrder,
    /// Nothing is left at the end.
    Leftovers,
    /// Wanted locks are granted.
    Outage,
    /// No update under the lock is lost, if tokens are checked.
    LostUpdates,
}

impl Property {
    /// All of them, in display order.
    pub const ALL: [Self; 16] = [
        Self::WellFormed,
        Self::ValidityOverlap,
        Self::UseOverlap,
        Self::PermitValidity,
        Self::PermitUse,
        Self::DuplicateTokens,
        Self::FallingTokens,
        Self::StaleWrites,
        Self::GoodWrites,
        Self::UseAfterEnd,
        Self::ExtensionAfterEnd,
        Self::LossSignal,
        Self::FairOrder,
        Self::Leftovers,
        Self::Outage,
        Self::LostUpdates,
    ];

    /// The meaning of a failure, in few words.
    #[must_use]
    pub const fn failure(self) -> &'static str {
        match self {
            Self::WellFormed => "records that cannot be",
            Self::ValidityOverlap => "pairs of holders valid at once",
            Self::UseOverlap => "pairs of holders inside at once",
            Self::PermitValidity => "grants beyond the permits",
            Self::PermitUse => "uses beyond the permits",
            Self::DuplicateTokens => "tokens granted again",
            Self::FallingTokens => "tokens smaller than before",
            Self::StaleWrites => "stale writes accepted",
            Self::GoodWrites => "good writes rejected",
            Self::UseAfterEnd => "uses after the end",
            Self::ExtensionAfterEnd => "extensions after the end",
            Self::LossSignal => "losses signalled late or never",
            Self::FairOrder => "grants out of order",
            Self::Leftovers => "things left behind",
            Self::Outage => "outages beyond the limit",
            Self::LostUpdates => "updates lost despite tokens",
        }
    }
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::WellFormed => "history",
            Self::ValidityOverlap => "validity",
            Self::UseOverlap => "use",
            Self::PermitValidity => "permits valid",
            Self::PermitUse => "permits in use",
            Self::DuplicateTokens => "tokens unique",
            Self::FallingTokens => "tokens grow",
            Self::StaleWrites => "stale writes",
            Self::GoodWrites => "good writes",
            Self::UseAfterEnd => "use after end",
            Self::ExtensionAfterEnd => "extension after end",
            Self::LossSignal => "loss signal",
            Self::FairOrder => "fair order",
            Self::Leftovers => "leftovers",
            Self::Outage => "outage",
            Self::LostUpdates => "lost updates",
        })
    }
}

/// The outcome of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "it is complete")]
pub enum Outcome {
    /// It was tested and held.
    Passed,
    /// It was violated.
    Failed,
    /// Nothing in the history tests it, or no limit was set.
    NotJudged,
}

/// The outcome for one property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Judgement {
    /// The property.
    pub property: Property,
    /// Its outcome.
    pub outcome: Outcome,
    /// How many violations there were.
    pub violations: u64,
    /// How many cases were checked.
    pub checked: u64,
}
