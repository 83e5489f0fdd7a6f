//! The workers' records of a round, and how they become a [`crate::measure::model::Round`].
//!
//! Each worker owns a [`Recorder`], so recording takes no lock. Recorders merge within a process,
//! cross process borders as [`WireRecorder`], merge again, and end in [`Recorder::into_round`]. All
//! times are nanoseconds since the start of the round, on a clock that the processes share.

mod fairness;
mod hand_off;
mod hold;
mod overlap;
mod recorder;
mod wire;

pub use fairness::{jain, max_over_min};
pub use hold::{Hold, WireError};
pub use overlap::{Exclusion, check_overlaps};
pub use recorder::{OpId, Recorder, RoundFacts};
pub use wire::WireRecorder;
