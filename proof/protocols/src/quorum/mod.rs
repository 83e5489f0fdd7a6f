//! The quorum (decision 0018), as `crates/locktopus-quorum` has it.
//!
//! Independent nodes, one mutex, clients that each take it once. Nodes are alike, so states that
//! differ only in which node is which are one.
//!
//! | file | what it mirrors |
//! |---|---|
//! | `rules` | what may be switched off, and how far the model goes |
//! | `state` | nodes, clients, and what is between each two |
//! | `node` | one node: `lua/acquire.lua`, `lua/part/token.lua`, and whether it votes (`eligibility.rs`) |
//! | `round` | the round of a client: `attempt.rs`, `votes.rs`, `release.rs` |
//! | `model` | which actions are possible, what they do, and what must hold |
//!
//! A restarted server has a clock of its own: fast, by as much as validity is shorter than a lease,
//! and where its counter is lost, behind or ahead. The other nodes have their counters, and give no
//! larger tokens than they must.
//!
//! Not in it: extensions, and with them locks that are put back; an owner that asks again under its
//! id (`claim.rs`). Layers, lowest first: rules, state, node, round, model.

mod model;
mod node;
mod round;
mod rules;
mod state;

pub use model::{Action, Quorum};
pub use node::Offset;
pub use rules::{Bounds, Rules};
pub use state::State;
