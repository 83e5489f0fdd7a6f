//! The checks of a change, each a command.

pub(crate) mod book;
pub(crate) mod features;
pub(crate) mod fencing;
pub(crate) mod layers;
pub(crate) mod oldest_rust;
pub(crate) mod prose;
pub(crate) mod sizes;
pub(crate) mod supply_chain;
