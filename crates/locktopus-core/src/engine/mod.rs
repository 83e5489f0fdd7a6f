//! The engine: how a lock is acquired, kept and given back. It knows backends only by their
//! contract, and nothing of users' guards and requests.
//!
//! * `holding`: held leases. Renewal, loss, release, and every call to the backend.
//! * `observe`: reports acquisitions and holds as spans and metrics.
//! * `break_reason`: stores why a lock was broken, for the owners that lost it.
//! * `acquisition`: how a task gets a lease, alone or together with others of this process.
//! * `jitter`: random durations, which all of them use.
//!
//! Layers, lowest first: jitter, error, unless_busy, cohort_settings, settings, wait_progress,
//! observe. The others know each other: a lease of `holding` has a `Passing` of `acquisition`, and
//! its services have the cohorts. That is all of `acquisition` that `holding` knows.

pub(crate) mod acquisition;
pub(crate) mod break_reason;
pub(crate) mod cohort_settings;
pub(crate) mod error;
pub(crate) mod holding;
pub(crate) mod jitter;
pub(crate) mod observe;
pub(crate) mod settings;
pub(crate) mod unless_busy;
pub(crate) mod wait_progress;
