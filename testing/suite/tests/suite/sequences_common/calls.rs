//! The calls that a sequence is made of.

use std::fmt;

use locktopus::CounterAction;

/// Somebody who asks for the lock: the same way every time, as the repetitions of one acquisition
/// do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// For how long, in ms.
    pub lease: u64,
    /// How long its place in the queue is kept, in ms.
    pub keep: u64,
    /// How many permits.
    pub permits: u32,
    /// How many fencing tokens.
    pub tokens: u32,
}

/// Which half of a read-write lock. All that is not read is `Whole`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    Whole,
    Read,
}

/// One call. `who` is the number of a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// `waits`: asks for a place in the queue.
    Attempt { who: usize, half: Half, waits: bool },
    /// For so many ms.
    Extend { who: usize, half: Half, lease: u64 },
    /// `sought`: says which place its attempts asked for.
    Release {
        who: usize,
        half: Half,
        sought: bool,
    },
    /// Ends every hold.
    Evict,
    /// Reads or changes the number inside.
    Count(CounterAction),
    /// Repeats the last operation on the number, under the same id.
    CountAgain,
    /// Reads the state.
    Look,
    /// Time passes, in ms.
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
            Self::Release { who, half, sought } => {
                let sought = if sought { ", naming its place" } else { "" };
                write!(f, "{}{} releases{sought}", name(who), reads(half))
            }
            Self::Evict => f.write_str("evict"),
            Self::Count(action) => write!(f, "count {action:?}"),
            Self::CountAgain => f.write_str("count the same again"),
            Self::Look => f.write_str("look"),
            Self::Pass(millis) => write!(f, "{millis} ms pass"),
        }
    }
}
