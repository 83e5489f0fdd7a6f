//! The contract: what the author of a backend implements and is given, and nothing else.
//!
//! Begin with [`backend`]. The other files are the words it speaks in: what is asked for (`request`, `counter`), what
//! is answered (`lock_state`, `backend_error`, `diagnosis`), how waiters are told (`wake`), and the values all of them
//! carry (`name`, `kind`, `owner`, `token`). `name`, `kind` and `mutex_profile` know each other, because they are one
//! thing in three files: a name is refused for a kind, and the profile of a kind turns names into keys.
//! `forward` and `trivial` write methods for wrappers and for what is not there. `node_probe` is for backends that can be nodes of a quorum.

pub(crate) mod backend;
pub(crate) mod backend_error;
pub mod clock;
pub(crate) mod counter;
pub(crate) mod diagnosis;
pub mod forward;
pub(crate) mod kind;
pub(crate) mod lock_state;
pub(crate) mod mode;
pub(crate) mod mutex_profile;
pub(crate) mod name;
pub(crate) mod node_probe;
pub(crate) mod option_error;
pub(crate) mod owner;
pub(crate) mod request;
pub(crate) mod safety_mode;
pub(crate) mod sync;
pub(crate) mod token;
pub(crate) mod token_retention;
pub(crate) mod trivial;
pub(crate) mod validity;
pub(crate) mod wake;
