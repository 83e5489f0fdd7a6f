#![cfg_attr(docsrs, feature(doc_cfg))]
//! The heart of Locktopus: the contract for backends, the engine that acquires and keeps locks, and the objects that
//! users hold. No client library and no backend appears anywhere in this crate.
//!
//! Those who use locks start at [`Locktopus`]; those who write a backend at [`LockBackend`]. Most programs
//! depend on the facade crate `locktopus` instead, which connects by URL.
//!
//! | layer | what it is | where to begin |
//! |---|---|---|
//! | `contract` | what a backend implements and is given | `contract/backend.rs` |
//! | `engine` | how a lock is acquired, renewed, handed on, lost and given back | `engine/acquisition/mod.rs` |
//! | `handles` | requests, guards, read-write locks, semaphores, latches, fences | `handles/locktopus.rs` |
//! | `recipes` | leader election and periodic jobs, made of locks alone | `recipes/mod.rs` |
//!
//! A layer imports only what is below it; `scripts/check-layers` reads the line that follows.
//!
//! Layers, lowest first: contract, engine, handles, recipes.
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod contract;
mod engine;
mod handles;
mod recipes;
#[cfg(test)]
mod test_backend;

pub use contract::backend::{BackendInfo, DynBackend, LockBackend};
pub use contract::backend_error::{
    BackendError, BackendErrorKind, Executed, OtherKind, TooFewPermits,
};
pub use contract::clock;
pub use contract::counter::{CounterAction, CounterOutcome, CounterRequest};
pub use contract::diagnosis::{Diagnosis, Finding, Primary, Severity};
#[doc(hidden)]
pub use contract::forward;
pub use contract::instance::{
    Announcement, InstanceId, InstanceQuery, InstanceRecord, MOST_INSTANCES,
};
pub use contract::kind::{LockKind, LockTarget};
pub use contract::label::Label;
pub use contract::lock_state::{
    Eviction, FoundLock, HolderState, LockPage, LockState, ScanCursor, WaiterState,
};
pub use contract::mode::Mode;
pub use contract::mutex_profile::{MutexProfile, Notification, ValueEncoding};
pub use contract::name::{LockName, MAX_NAME_BYTES, NameEncoding, NameError, RawName};
pub use contract::node_probe::{NodeIdentity, NodeProbe, Sighting};
pub use contract::option_error::OptionError;
pub use contract::owner::{OwnerId, process_uuid};
pub use contract::request::{
    AcquireAttempt, AttemptOutcome, ExtendOutcome, ExtendRequest, GroupOutcome, Linger,
    MAX_PERMITS, ReleaseOutcome, ReleaseRequest, Sought,
};
pub use contract::runtime::{NoRuntime, PerRuntime};
pub use contract::safety_mode::{Connected, NotReplicated, ReplicaNeed, SafetyMode};
#[cfg(feature = "simulation")]
#[doc(hidden)]
pub use contract::simulation::Simulated;
#[doc(hidden)]
pub use contract::spelled::spelled;
#[doc(hidden)]
pub use contract::sync::lock;
pub use contract::token::{FencingToken, TOKEN_LIMIT};
pub use contract::token_retention::TokenRetention;
pub use contract::validity::ValidityMargin;
pub use contract::wake::{Wake, WakeGroup, WakeStream};
pub use engine::cohort_settings::CohortSettings;
pub use engine::error::{LockError, LostCause, Phase};
#[doc(hidden)]
pub use engine::observe::reconnected;
pub use engine::settings::{MIN_LEASE, WaitStrategy};
pub use engine::unless_busy::UnlessBusy;
pub use engine::wait_progress::{WaitEstimate, WaitPosition, WaitProgress};
pub use handles::any_guard::AnyGuard;
pub use handles::builder::LocktopusBuilder;
pub use handles::fence::{Fence, FenceGate, FenceParseError, HolderMark, StaleCause, StaleFence};
pub use handles::guard::LockGuard;
pub use handles::held_lock::HeldLock;
pub use handles::latch::{Latch, LatchWait};
pub use handles::lease::Lease;
pub use handles::listing::{ListedLock, LockList};
pub use handles::lock_request::LockRequest;
pub use handles::locktopus::{Locktopus, ShutdownReport};
pub use handles::multi::{MemberName, MultiGuard, MultiLock, MultiReleaseError};
pub use handles::owner_handle::Owner;
pub use handles::rw_lock::{DowngradeError, RwLock, WriteGuard};
pub use handles::semaphore::{MAX_TOTAL, Semaphore};
pub use handles::ticket::LeaseTicket;
pub use handles::who::Who;
pub use recipes::job::{CatchUp, Job, ScheduledJob, Tick};
pub use recipes::leader::{Incumbent, LeaderElection, Leadership};
pub use tokio_util::sync::CancellationToken;
