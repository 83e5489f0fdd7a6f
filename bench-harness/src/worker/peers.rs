//! Other ways of locking, measured beside this library on the same servers in the same rounds.

mod r1;
mod rslock;

pub(super) use r1::connect as r1;
pub(super) use rslock::connect as rslock;
