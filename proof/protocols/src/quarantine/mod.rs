//! Quarantine across failovers (decision 0017): several in a row, each of which may lose what was
//! not replicated.
//!
//! One primary with a replica that lags behind by any time, one lock, clients that take it once
//! each, extend it and give it back. A primary that was replaced grants nothing here, as
//! `min-replicas-to-write` makes sure; left out, it is what breaks. It may be promoted again as it
//! is. Whoever asks it then knows of that, because clients go where the newest word of the
//! sentinels leads (0028); left out, it breaks too.
//!
//! | file | what it mirrors |
//! |---|---|
//! | `rules` | what may be switched off, and how far the model goes |
//! | `state` | servers, the record of their history, clients |
//! | `server` | the scripts: `lua/acquire.lua`, `lua/lock_extend.lua`, `lua/release.lua`, `lua/part/quarantine.lua` |
//! | `model` | which actions are possible, what they do, and what must hold |
//!
//! Not in it: the queue, slots that move, evictions, tokens. Layers, lowest first: rules, state,
//! server, model.

mod model;
mod rules;
mod server;
mod state;

pub use model::{Action, Quarantine};
pub use rules::{Bounds, Rules, Wait};
pub use state::State;
