//! Changes the shipped Lua scripts in every small way, one at a time, and looks whether a test notices.
//!
//! `scripts/mutants` runs it. What survives is either named in `survivors`, with the reason, or a failure.
//!
//! | module | what is in it |
//! |---|---|
//! | [`parts`] | the files that scripts are made of |
//! | [`edits`], [`mutants`] | every small change of them |
//! | [`levels`] | the tests that each mutant is shown to |
//! | [`pool`], [`verdict`] | processes that try mutants, and what they say |
//! | [`kept`] | what is known from runs before |
//! | [`survivors`], [`page`] | the table of those that survive, and the table in docs/testing.md |
//!
//! Layers, lowest first: parts, edits, mutants, verdict, levels, pool, kept, survivors, page.

pub mod edits;
pub mod kept;
pub mod levels;
pub mod mutants;
pub mod page;
pub mod parts;
pub mod pool;
pub mod survivors;
pub mod verdict;
