//! The quorum (decision 0018), as in `crates/locktopus-quorum`.
//!
//! Independent nodes, one mutex, and clients that acquire it once each. Nodes are alike, so states
//! that only permute nodes are the same.
//!
//! | file | what it mirrors |
//! |---|---|
//! | `rules` | the rules that can be switched off, and the bounds |
//! | `state` | nodes, clients, and the links between them |
//! | `node` | `lua/acquire.lua`, `lua/part/token.lua`, and its vote (`eligibility.rs`) |
//! | `round` | the round of a client: `attempt.rs`, `votes.rs`, `release.rs` |
//! | `model` | when each action is possible, its effect, and the properties |
//!
//! A restarted server has its own clock. It may be fast by the drift that validity allows for, and
//! if it lost its counter, it may be behind or ahead. The other nodes keep their counters, and give
//! the smallest tokens they can.
//!
//! Not modelled: extensions, and so locks that are put back; an owner that asks again under its id
//! (`claim.rs`). Layers, lowest first: rules, state, node, round, model.

mod model;
mod node;
mod round;
mod rules;
mod state;

pub use model::{Action, Quorum};
pub use node::Offset;
pub use rules::{Bounds, Rules};
pub use state::State;
