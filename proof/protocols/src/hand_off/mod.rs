//! The direct hand-off, with subscriptions anywhere (decisions 0012 and 0019).
//!
//! One server with a replica that only repeats what is published, one lock, one holder and waiters
//! with an inbox each. Time passes in ticks; what has no fault takes no longer than one tick.
//!
//! | file | what it mirrors |
//! |---|---|
//! | `rules` | what may be switched off, and how far the model goes |
//! | `state` | what there is: server, clients, messages |
//! | `server` | the scripts: `lua/acquire.lua`, `lua/release.lua`, `lua/part/queue.lua`, `lua/part/hand_off.lua` |
//! | `client` | `crates/locktopus-core/src/engine/acquisition`: the loop of attempts, and `believe` |
//! | `action` | what may happen |
//! | `time` | a tick |
//! | `model` | which actions are possible, what they do, and what must hold |
//!
//! Not in it: renewals, the local queue of a process, other libraries' turns, kinds with several
//! holders, evictions, and clocks of different speeds (those are in [`quorum`](crate::quorum)).
//! Layers, lowest first: rules, state, server, client, action, model, time.

mod action;
mod client;
mod model;
mod rules;
mod server;
mod state;
mod time;

pub use action::Action;
pub use model::HandOff;
pub use rules::{Bounds, Faults, Rules};
pub use state::State;
