//! Leases that are held: what is known about each, who renews it, and how it is given back.
//!
//! | file | what it does |
//! |---|---|
//! | `lease`, `term` | the state of one lease, which guards, the watchdog, the local queue and the reaper share |
//! | `grant` | what a lease begins with |
//! | `role` | what was granted, and whose it is: a lease, the core of one that is passed on, or a turn of it |
//! | `lease_in_turns` | a lease that tasks of this process pass to each other, seen from here |
//! | `announcing` | keeps the record of a labelled instance |
//! | `services` | what all leases of one `Locktopus` share: backend, settings, watchdog |
//! | `background` | the runtimes it is used on, and work that moves to another one when its own ends |
//! | `calls`, `counting` | every call to the backend, bounded in time |
//! | `limits` | how many of them are under way at once |
//! | `watchdog` | renews leases and notices when they are lost |
//! | `held` | a hold on a lease; dropping it gives the lease back |
//! | `give_back`, `reaper` | the release: awaited, or in the background |
//! | `linger` | what is given back, and stays held for a while |
//! | `shared_owner` | a writer's owner id that a reader uses as well |
//!
//! Some of these files import each other in a circle, and are one thing in several files: the state of a lease (`lease`) says
//! to `lease_in_turns` and `shared_owner` when it ends, both are asked about leases, and a release (`give_back`, `reaper`) or a
//! renewal (`watchdog`) changes that state through `services`, which own the watchdog and the reaper. Nothing outside this
//! folder is part of the circle: what is above is reached through the traits `LeaseInTurns` and `ScheduledCheck`.

pub(crate) mod announcing;
pub(crate) mod background;
pub(crate) mod calls;
pub(crate) mod counting;
pub(crate) mod give_back;
pub(crate) mod grant;
pub(crate) mod held;
pub(crate) mod lease;
pub(crate) mod lease_in_turns;
mod limits;
mod linger;
pub(crate) mod reaper;
pub(crate) mod role;
pub(crate) mod services;
pub(crate) mod shared_owner;
mod term;
pub(crate) mod watchdog;
