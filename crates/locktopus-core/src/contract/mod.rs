//! The contract: what the author of a backend implements and is given, and nothing else.
//!
//! | modules | what they are |
//! |---|---|
//! | `backend` | the trait that a backend implements; begin here |
//! | `request`, `counter` | questions to a backend and their answers: about holds; about the number in a semaphore or latch |
//! | `lock_state`, `diagnosis`, `backend_error` | the other answers: the state of a lock, findings at connect, errors |
//! | `wake` | how waiters are told to look, or that they hold the lock |
//! | `name`, `kind`, `mutex_profile` | which lock: its name, its kind, the layout of a mutex shared with other libraries |
//! | `owner`, `mode`, `token` | who holds it, in what way, and with which fencing token |
//! | `instance`, `label`, `host` | which program stands behind an owner id, for people who look |
//! | `clock`, `validity` | the clock that counts suspended time, and how long a holder may believe in its lease |
//! | `runtime` | what each tokio runtime has for itself, for backends with connections or tasks |
//! | `safety_mode`, `token_retention`, `option_error` | options, and the error of an impossible one |
//! | `node_probe` | for backends that can be nodes of a quorum: whether a node may have lost its data |
//! | `forward`, `trivial` | macros that write methods: of wrappers, and of backends that do not have something |
//! | `simulation` | a process of a simulator, whose random numbers are those of a seed |
//! | `sync` | locking a mutex that may be poisoned |
//!
//! `name`, `kind` and `mutex_profile` import each other in a circle, because a lock is a name and a kind together: whether a
//! name is allowed depends on the kind, and the profile of a mutex, which is part of its kind, turns names into keys.

pub(crate) mod backend;
pub(crate) mod backend_error;
pub mod clock;
pub(crate) mod counter;
pub(crate) mod diagnosis;
pub mod forward;
pub(crate) mod host;
pub(crate) mod instance;
pub(crate) mod kind;
pub(crate) mod label;
pub(crate) mod lock_state;
pub(crate) mod mode;
pub(crate) mod mutex_profile;
pub(crate) mod name;
pub(crate) mod node_probe;
pub(crate) mod option_error;
pub(crate) mod owner;
pub(crate) mod request;
pub(crate) mod runtime;
pub(crate) mod safety_mode;
#[cfg(feature = "simulation")]
pub(crate) mod simulation;
pub(crate) mod spelled;
pub(crate) mod sync;
pub(crate) mod token;
pub(crate) mod token_retention;
pub(crate) mod trivial;
pub(crate) mod validity;
pub(crate) mod wake;
