//! The heart of Locktopus: lock requests, guards, the watchdog, the contract for backends and the embedded
//! in-memory backend. No client library appears anywhere in this crate.
//!
//! Those who use locks start at [`Locktopus`]; those who write a backend at [`LockBackend`]. Most programs
//! depend on the facade crate `locktopus` instead, which connects by URL.
//!
//! | module | why it exists |
//! |---|---|
//! | `lock_request`, `acquire` | what is wanted, and the one loop that gets it |
//! | `guard`, `lease`, `ticket`, `owner_handle` | what a holder has in hand |
//! | `watchdog`, `reaper`, `services`, `calls` | what runs in the background, and how it asks the backend |
//! | `validity`, `clock` | for how long a holder may believe |
//! | `backend`, `request`, `wake`, `diagnosis` | the contract with whatever keeps the locks |
//! | `memory` | the embedded backend |

mod acquire;
mod backend;
mod backend_error;
mod calls;
mod clock;
mod diagnosis;
mod error;
mod guard;
mod kind;
mod lease;
mod lock_request;
mod locktopus;
mod memory;
mod name;
mod owner;
mod owner_handle;
mod reaper;
mod request;
mod services;
mod settings;
mod ticket;
mod token;
mod validity;
mod wake;
mod watchdog;

pub use backend::{BackendInfo, DynBackend, LockBackend, kind_has_tokens};
pub use backend_error::{BackendError, BackendErrorKind, Executed};
pub use diagnosis::{Diagnosis, Finding, Severity};
pub use error::{LockError, LostCause, OptionError, Phase};
pub use guard::LockGuard;
pub use kind::{LockKind, LockTarget, MutexProfile, ValueEncoding};
pub use lease::Lease;
pub use lock_request::LockRequest;
pub use locktopus::{Locktopus, LocktopusBuilder, ShutdownReport};
pub use memory::MemoryBackend;
pub use name::{LockName, MAX_NAME_BYTES, NameError};
pub use owner::{OwnerId, process_uuid};
pub use owner_handle::Owner;
pub use request::{
    AcquireAttempt, AttemptOutcome, ExtendOutcome, ExtendRequest, HolderState, LockState,
    ReleaseOutcome, ReleaseRequest,
};
pub use settings::{MIN_LEASE, WaitStrategy};
pub use ticket::LeaseTicket;
pub use token::{FencingToken, TOKEN_LIMIT};
pub use tokio_util::sync::CancellationToken;
pub use validity::ValidityMargin;
pub use wake::{Wake, WakeGroup, WakeStream};
