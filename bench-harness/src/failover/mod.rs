//! Failover validation: real faults on real servers under lock load, and what they did to the
//! locks.
//!
//! ```text
//! plan (TOML) ─► run: servers, faults, worker processes ─► histories ─► judge ─► model (JSON) ─► views
//!                       │                    │
//!                       └── resource ◄───────┘   checks tokens, and counts lost updates
//! ```
//!
//! A lock's own word does not count: workers record what they did and believed, and the checker of
//! `locktopus_history` judges the records afterwards.
//!
//! Layers, lowest first: plan, model, completeness, report, page, resource, worker, run.

pub mod completeness;
pub mod model;
pub mod page;
pub mod plan;
pub mod report;
mod resource;
pub mod run;
mod worker;

pub use worker::serve;
