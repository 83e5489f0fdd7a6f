//! Contention latency of Locktopus on real servers, as HDR histograms.
//!
//! Data flows one way: workers fill a [`record::Recorder`], a runner turns merged recorders into
//! rounds of a [`model::Report`], [`mod@derive`] computes medians, spreads and ratios from it, and
//! [`report`] renders them; [`targets`] compares them with what is promised. Everything after the
//! recorder works on stored data only, so any run can be rendered again, and two runs compared,
//! long after the servers are gone.

pub mod cli;
pub mod cmd;
pub mod complete;
pub mod derive;
pub mod detect;
pub mod exit;
pub mod failover;
pub mod model;
pub mod plan;
pub mod record;
pub mod report;
pub mod run;
#[doc(hidden)]
pub mod sample;
mod spin;
pub mod targets;
pub mod worker;
