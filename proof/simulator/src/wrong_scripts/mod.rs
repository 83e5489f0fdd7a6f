//! Scripts with one rule broken, which the simulator must notice.
//!
//! A simulator that finds nothing proves something only if it finds planted mistakes. These are
//! mistakes that lock libraries have made, and mistakes possible in the hand-off.

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
    /// The kind of lock that shows it.
    pub kind: Kind,
    /// Whether it shows only if others use the name as another kind, or lose a number.
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
