//! Held leases: what is known about each, what renews it, and how it is given back.
//!
//! | file | what it does |
//! |---|---|
//! | `lease`, `term` | a lease of the backend: what was granted, its length, why it ended |
//! | `turn` | a task's turn of a lease: where its guards hear of a loss |
//! | `announcing` | keeps the record of a labelled instance |
//! | `services` | what everything of one `Locktopus` shares: backend, settings, watchdog |
//! | `background` | the runtimes in use, and work that moves to another one when its own ends |
//! | `calls`, `counting` | every call to the backend, bounded in time |
//! | `limits` | how many calls are under way at once |
//! | `watchdog` | renews leases and notices when they are lost |
//! | `hold` | a hold of a turn; dropping it passes the lease on or gives it back |
//! | `give_back`, `reaper` | the release: awaited, or in the background |
//! | `linger` | released locks that stay held for a while |
//! | `shared_owner` | a writer's owner id that a reader uses as well |
//!
//! Some of these files import each other in a circle. A lease notifies its turn when it ends, and a
//! turn has its lease. A release (`give_back`, `reaper`) and a renewal (`watchdog`) change the
//! lease through `services`, which own the watchdog and the reaper. `passing` in `acquisition` is
//! part of the circle: it passes a lease from task to task.
//!
//! How a guard hears of a loss: the watchdog judges deadlines (`take_due`) and reads the answers of
//! the backend (`renew`). Both end in `BackendLease::end`. That calls `Turn::end`, which cancels
//! the guard's signal.

pub(crate) mod announcing;
pub(crate) mod background;
pub(crate) mod calls;
pub(crate) mod counting;
pub(crate) mod give_back;
pub(crate) mod hold;
pub(crate) mod lease;
mod limits;
mod linger;
pub(crate) mod reaper;
pub(crate) mod services;
pub(crate) mod shared_owner;
mod term;
pub(crate) mod turn;
pub(crate) mod watchdog;
