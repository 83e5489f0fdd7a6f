#![cfg_attr(docsrs, feature(doc_cfg))]
//! The contract of Locktopus: what you implement to write a backend, and what you receive.
//!
//! Start at [`LockBackend`]. A backend, or a layer around one, depends only on this crate. The
//! crate `locktopus-core` contains the engine that takes and keeps locks by this contract, and
//! exports all of it again.
//!
//! | modules | what they are |
//! |---|---|
//! | `backend` | the trait that a backend implements; begin here |
//! | `capability` | optional abilities of a backend |
//! | `layer` | a backend that wraps another one |
//! | `request`, `counter` | requests and their answers: about holds, about counts and permits |
//! | `lock_state`, `diagnosis`, `backend_error` | other answers: lock states, findings, errors |
//! | `wake` | notifies waiters that a lock may be free, or that they hold it |
//! | `name`, `kind`, `mutex_profile` | which lock: its name and kind, a shared mutex's layout |
//! | `owner`, `mode`, `token` | who holds it, how, and its fencing token |
//! | `instance`, `label`, `host` | which program an owner id belongs to, for display |
//! | `clock`, `validity` | the clock that counts suspended time; how long to trust a lease |
//! | `runtime` | a value for each tokio runtime, for backends with connections or tasks |
//! | `safety_mode`, `token_retention`, `option_error` | options, and the error of a bad one |
//! | `node_probe` | for nodes of a quorum: whether a node may have lost its data |
//! | `simulation` | a process of a simulator, with random numbers from a seed |
//! | `internal` | what the engine uses besides the contract |
//! | `sync` | locking a mutex that may be poisoned |
//!
//! `name`, `kind` and `mutex_profile` import each other in a circle, because a lock is a name
//! together with a kind. The kind decides whether a name is allowed, and part of the kind, the
//! profile of a mutex, turns names into keys.

#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod backend;
mod backend_error;
mod capability;
pub mod clock;
mod counter;
mod diagnosis;
mod host;
mod instance;
#[doc(hidden)]
pub mod internal;
mod kind;
mod label;
mod layer;
mod lock_state;
mod mode;
mod mutex_profile;
mod name;
mod node_probe;
mod option_error;
mod owner;
mod request;
mod runtime;
mod safety_mode;
#[cfg(feature = "simulation")]
mod simulation;
mod spelled;
mod sync;
mod token;
mod token_retention;
mod validity;
mod wake;

pub use backend::{BackendInfo, DynBackend, LockBackend, TokenSource};
pub use backend_error::{BackendError, BackendErrorKind, Executed, OtherKind, TooFewPermits};
pub use capability::{Counters, Diagnostics, Directory, Groups, Instances, WakeUps};
pub use counter::{CounterAction, CounterOutcome, CounterRequest};
pub use diagnosis::{Diagnosis, Finding, Primary, Severity};
pub use instance::{
    Announcement, InstanceId, InstanceQuery, InstanceRecord, MAX_INSTANCES_PER_QUERY,
};
pub use kind::{LockKind, LockTarget};
pub use label::Label;
pub use layer::Layer;
pub use lock_state::{
    Eviction, FoundLock, HolderState, LockPage, LockState, ScanCursor, WaiterState,
};
pub use mode::Mode;
pub use mutex_profile::{MutexProfile, Notification, ValueEncoding};
pub use name::{LockName, MAX_NAME_BYTES, NameEncoding, NameError, RawName};
pub use node_probe::{NodeIdentity, NodeProbe, Sighting};
pub use option_error::OptionError;
pub use owner::{OwnerId, process_uuid};
pub use request::{
    AcquireAttempt, AttemptOutcome, ExtendOutcome, ExtendRequest, GroupOutcome, Linger,
    MAX_PERMITS, MIN_LEASE, PlaceHint, ReleaseOutcome, ReleaseRequest,
};
pub use runtime::{NoRuntime, PerRuntime};
pub use safety_mode::{ConnectedReplicas, NotReplicated, ReplicaNeed, SafetyMode};
#[cfg(feature = "simulation")]
#[doc(hidden)]
pub use simulation::Simulated;
#[doc(hidden)]
pub use spelled::spelled;
#[doc(hidden)]
pub use sync::lock;
pub use token::{FencingToken, TOKEN_LIMIT};
pub use token_retention::TokenRetention;
pub use validity::ValidityMargin;
pub use wake::{Wake, WakeGroup, WakeStream};
