//! Leases that are held: what is known about each, who renews it, and how it is given back.
//!
//! | file | what it does |
//! |---|---|
//! | `lease`, `term` | the state of one lease, which guards, the watchdog, the local queue and the reaper share |
//! | `grant` | what a lease begins with |
//! | `passed_on` | a lease that tasks of this process pass to each other, seen from here |
//! | `services` | what all leases of one `Locktopus` share: backend, settings, runtime, watchdog |
//! | `calls`, `counting` | every call to the backend, bounded in time |
//! | `watchdog` | renews leases and notices when they are lost |
//! | `held` | a hold on a lease; dropping it gives the lease back |
//! | `give_back`, `reaper` | the release: awaited, or in the background |
//! | `linger` | what is given back, and stays held for a while |
//! | `shared_owner` | a writer's owner id that a reader uses as well |

pub(crate) mod calls;
pub(crate) mod counting;
pub(crate) mod give_back;
pub(crate) mod grant;
pub(crate) mod held;
pub(crate) mod lease;
mod linger;
pub(crate) mod passed_on;
pub(crate) mod reaper;
pub(crate) mod services;
pub(crate) mod shared_owner;
mod term;
pub(crate) mod watchdog;
