//! Removes the product's rules one at a time, and checks that a test notices: `proof/run scripts`
//! and `proof/run reverts`.
//!
//! | module | what is in it |
//! |---|---|
//! | [`scripts`] | every small change of the shipped Lua |
//! | [`reverts`] | fixes of former bugs, reverted |
//!
//! For small changes of the Rust, `proof/run rust` runs cargo-mutants.

pub mod reverts;
pub mod scripts;
