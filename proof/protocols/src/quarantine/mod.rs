//! Quarantine across several failovers in a row that may lose unreplicated writes (decision 0017).
//!
//! One primary with a replica that lags arbitrarily, one lock, and clients that acquire it once
//! each, extend it and release it. A replaced primary grants nothing here, because
//! `min-replicas-to-write` stops it; the model breaks without that rule. It may be promoted again
//! with its old data. Clients that ask it then know of that, because they follow the latest news of
//! the sentinels (0028); the model breaks without that rule, too.
//!
//! | file | what it mirrors |
//! |---|---|
//! | `rules` | the rules that can be switched off, and the bounds |
//! | `state` | servers, the record of their history, clients |
//! | `server` | in `lua`: `acquire.lua`, `lock_extend.lua`, `release.lua`, `part/quarantine.lua` |
//! | `model` | when each action is possible, its effect, and the properties |
//!
//! Not modelled: the queue, slots that move, evictions, tokens. Layers, lowest first: rules, state,
//! server, model.

mod model;
mod rules;
mod server;
mod state;

pub use model::{Action, Quarantine};
pub use rules::{Bounds, Rules, Wait};
pub use state::State;
