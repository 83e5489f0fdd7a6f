//! The calls of a sequence.

use std::fmt;

use locktopus::CounterAction;

/// A party that requests the lock. All its requests are equal, as the repetitions of one
/// acquisition are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// The lease, in ms.
    pub lease: u64,
    /// How long the queue keeps its place, in ms.
    pub keep: u64,
    /// The number of permits.
    pub permits: u32,
    /// The number of fencing tokens.
    pub tokens: u32,
}

/// The half of a read-write lock. Every request except a read is `Whole`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    Whole,
    Read,
}

/// One call. `who` is the number of a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// `waits`: requests a place in the queue.
    Attempt { who: usize, half: Half, waits: bool },
    /// `lease` is in ms.
    Extend { who: usize, half: Half, lease: u64 },
    /// `hint`: names the place that its attempts requested.
    Release { who: usize, half: Half, hint: bool },
    /// Ends every hold.
    Evict,
    /// Reads or changes the number inside.
    Count(CounterAction),
    /// Repeats the last operation on the number, with the same id.
    CountAgain,
    /// Reads the state.
    Look,
    /// Lets time pass, in ms.
    Pass(u64),
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |who: usize| char::from(b'A' + u8::try_from(who).unwrap_or(25));
        let reads = |half| if half == Half::Read { " (read)" } else { "" };
        match *self {
            Self::Attempt { who, half, waits } => {
                let waits = if waits { ", and waits" } else { "" };
                write!(f, "{}{} attempts{waits}", name(who), reads(half))
            }
            Self::Extend { who, half, lease } => {
                write!(f, "{}{} extends to {lease} ms", name(who), reads(half))
            }
            Self::Release { who, half, hint } => {
                let hint = if hint { ", naming its place" } else { "" };
                write!(f, "{}{} releases{hint}", name(who), reads(half))
            }
            Self::Evict => f.write_str("evict"),
            Self::Count(action) => write!(f, "count {action:?}"),
            Self::CountAgain => f.write_str("count the same again"),
            Self::Look => f.write_str("look"),
            Self::Pass(millis) => write!(f, "{millis} ms pass"),
        }
    }
}
