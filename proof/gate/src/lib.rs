//! What takes the product's rules away one at a time, and looks whether a test notices:
//! `proof/run scripts` and `proof/run reverts`.
//!
//! | module | what is in it |
//! |---|---|
//! | [`scripts`] | every small change of the shipped Lua |
//! | [`reverts`] | mends of faults that were found, taken back |
//!
//! Small changes of the Rust are made by cargo-mutants, as it comes: `proof/run rust`.

pub mod reverts;
pub mod scripts;
