//! The conformance suite tests every rule of the contract of
//! [`LockBackend`](locktopus_core::LockBackend), and the behaviour that users of
//! [`Locktopus`](locktopus_core::Locktopus) see on top of it.
//!
//! For authors of backends. The suite needs one thing, a way to connect another client to the same
//! store, because most rules concern two clients.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
//! use std::sync::Arc;
//! use locktopus_core::DynBackend;
//! use locktopus_memory::MemoryBackend;
//! use locktopus_conformance::Suite;
//!
//! let store = MemoryBackend::new();
//! let suite = Suite::new(move || {
//!     let client = store.another_client();
//!     async move { Arc::new(client) as DynBackend }
//! });
//! suite.shared_waiters().only("expiry").run().await.assert_passed();
//! # }
//! ```
//!
//! Start servers once, then [`Suite::run`] every case on them at the same time: each case uses lock
//! names of its own. A failed case names the rule that it breaks. If you have a test runner of your
//! own, use [`Suite::trials`]. To run only some cases, set `LOCKTOPUS_CONFORMANCE` to a part of
//! their names.
//!
//! Not stable API: cases are added and tightened without a new major version.
//!
//! | module | what is in it |
//! |---|---|
//! | `suite`, `store` | what to run, and on which store |
//! | [`cases`], `case`, `rule` | the cases, and the rules that they prove |
//! | `ctx`, `client`, `waiter` | what a case works with |
//! | `flavour`, `timing`, `lasting` | the locks of cases, time limits, and how long leases last |
//! | `report`, `watch` | what a run found, and which cases do not end |
//! | [`cancel`] | the sweep that drops futures at every await |
//!
//! Layers, lowest first: flavour, lasting, rule, timing, watch, report, client, waiter, store, ctx,
//! case, cases, suite.
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod case;
mod client;
mod ctx;
mod flavour;
mod lasting;
mod report;
mod rule;
mod store;
mod suite;
mod timing;
mod waiter;
mod watch;

pub mod cancel;
pub mod cases;

pub use case::{Case, CaseFuture};
pub use client::Client;
pub use ctx::Ctx;
pub use flavour::Flavour;
pub use report::{Outcome, Report, Verdict};
pub use rule::Rule;
pub use suite::{Suite, Trial};
pub use timing::{LONG, SHORT, SLACK};
pub use waiter::{Handed, Waiter};
