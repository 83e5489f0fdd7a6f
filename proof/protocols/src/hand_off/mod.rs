//! The direct hand-off, with subscriptions anywhere (decisions 0012 and 0019).
//!
//! One server with a replica that only relays published messages, one lock, one holder, and waiters
//! with an inbox each. Time passes in ticks; without a fault every message takes at most one tick.
//!
//! | file | what it mirrors |
//! |---|---|
//! | `rules` | the rules that can be switched off, and the bounds |
//! | `state` | server, clients, messages |
//! | `server` | in `lua`: `acquire.lua`, `release.lua`, `part/queue.lua`, `part/hand_off.lua` |
//! | `client` | `crates/locktopus-core/src/engine/acquisition`: attempts and `believe` |
//! | `action` | the possible actions |
//! | `time` | a tick |
//! | `model` | when each action is possible, its effect, and the properties |
//!
//! Not modelled: renewals, the local queue of a process, other libraries' turns, kinds with several
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
