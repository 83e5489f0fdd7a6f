//! The heart of Locktopus: lock requests, guards, the watchdog, the contract for backends and the embedded
//! in-memory backend. No client library appears anywhere in this crate.
//!
//! Those who use locks start at [`Locktopus`]; those who write a backend at [`LockBackend`]. Most programs
//! depend on the facade crate `locktopus` instead, which connects by URL.
//!
//! | module | why it exists |
//! |---|---|
//! | `lock_request`, `acquire` | what is wanted, and the one loop that gets it |
//! | `rw_lock`, `semaphore`, `latch` | the kinds that are more than one request |
//! | `guard`, `lease`, `ticket`, `owner_handle` | what a holder has in hand |
//! | `wait_progress`, `listing`, `held_lock` | what can be known about waits and locks |
//! | `watchdog`, `reaper`, `services`, `calls` | what runs in the background, and how it asks the backend |
//! | `validity`, `clock` | for how long a holder may believe |
//! | `backend`, `request`, `wake`, `diagnosis` | the contract with whatever keeps the locks |
//! | `fence` | tokens on the protected side |
//! | `memory` | the embedded backend |
//! | `multi` | several locks, all or nothing |
//! | `quorum` | one backend over several, of which a majority must agree |

mod acquire;
mod any_guard;
mod attempts;
mod backend;
mod backend_error;
mod calls;
mod clock;
mod cohort;
mod counter;
mod counting;
mod diagnosis;
mod error;
mod fence;
#[doc(hidden)]
pub mod forward;
mod guard;
mod held_lock;
mod kind;
mod latch;
mod lease;
mod lease_cache;
mod listing;
mod lock_request;
mod lock_state;
mod locktopus;
mod memory;
mod multi;
mod mutex_profile;
mod name;
mod owner;
mod owner_handle;
mod quorum;
mod reaper;
mod request;
mod rw_lock;
mod safety_mode;
mod semaphore;
mod services;
mod settings;
mod ticket;
mod token;
mod token_retention;
mod validity;
mod wait_progress;
mod wake;
mod watchdog;

pub use any_guard::AnyGuard;
pub use backend::{BackendInfo, DynBackend, LockBackend};
pub use backend_error::{BackendError, BackendErrorKind, Executed, OtherKind};
pub use cohort::CohortSettings;
pub use counter::{CounterAction, CounterOutcome, CounterRequest};
pub use diagnosis::{Diagnosis, Finding, Severity};
pub use error::{LockError, LostCause, OptionError, Phase};
pub use fence::{Fence, FenceGate, FenceParseError, HolderMark, StaleCause, StaleFence};
pub use guard::LockGuard;
pub use held_lock::HeldLock;
pub use kind::{LockKind, LockTarget};
pub use latch::{Latch, LatchWait};
pub use lease::Lease;
pub use listing::{ListedLock, LockList};
pub use lock_request::{LockRequest, MAX_PERMITS};
pub use lock_state::{
    Eviction, FoundLock, HolderState, LockPage, LockState, Mode, ScanCursor, WaiterState,
};
pub use locktopus::{Locktopus, LocktopusBuilder, ShutdownReport};
pub use memory::MemoryBackend;
pub use multi::{MemberName, MultiGuard, MultiLock, MultiReleaseError};
pub use mutex_profile::{Bell, MutexProfile, ValueEncoding};
pub use name::{LockName, MAX_NAME_BYTES, NameEncoding, NameError, RawName};
pub use owner::{OwnerId, process_uuid};
pub use owner_handle::Owner;
pub use quorum::{NodeIdentity, NodeProbe, NodeView, QuorumBackend, QuorumBuilder};
pub use request::{
    AcquireAttempt, AttemptOutcome, ExtendOutcome, ExtendRequest, GroupOutcome, ReleaseOutcome,
    ReleaseRequest,
};
pub use rw_lock::{DowngradeError, RwLock, WriteGuard};
pub use safety_mode::{Connected, NotReplicated, ReplicaNeed, SafetyMode};
pub use semaphore::{MAX_TOTAL, Semaphore};
pub use settings::{MIN_LEASE, WaitStrategy};
pub use ticket::LeaseTicket;
pub use token::{FencingToken, TOKEN_LIMIT};
pub use token_retention::TokenRetention;
pub use tokio_util::sync::CancellationToken;
pub use validity::ValidityMargin;
pub use wait_progress::{WaitEstimate, WaitProgress, WaitStanding};
pub use wake::{Wake, WakeGroup, WakeStream};
