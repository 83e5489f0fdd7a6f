//! Scripts with one rule broken, for the simulator to notice.
//!
//! A simulator that finds nothing proves nothing unless it finds what is there: these are mistakes
//! that lock libraries have made, and mistakes that the hand-off could make.

mod handing_on;
mod mixed;
mod patch;
mod taking;
mod wrong;

use locktopus_model::layout::Kind;

pub use self::patch::Patch;

/// One mistake.
#[derive(Debug, Clone, Copy)]
pub struct WrongScript {
    /// What is wrong.
    pub name: &'static str,
    /// The kind of lock on which it can be noticed.
    pub kind: Kind,
    /// Only where others use the name for another kind, or lose a number.
    pub mixed: bool,
    /// The change of the text.
    pub patch: Patch,
}

/// Every mistake.
#[must_use]
pub fn wrong_scripts() -> Vec<WrongScript> {
    let all = [handing_on::PATCHES, taking::PATCHES, mixed::PATCHES];
    all.into_iter().flatten().copied().collect()
}
