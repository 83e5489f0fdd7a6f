//! Random schedules of simulated clients on modelled servers.
//!
//! A seed decides everything: how many processes there are and what they like to do, how fast their clocks are, what
//! the network does to each message, who stops, who dies, and when. One schedule is a few seconds of virtual time.
//! While it runs a judge looks at every script and at everything that a process believes; see [`Invariant`].
//!
//! Layers, lowest first: ask, kind, patch, counts, layout, rules, wire, client, config, net, trace, calls, node, actor,
//! mutants, strangers, setup, judge, world, runner.

mod actor;
mod ask;
mod calls;
mod client;
mod config;
mod counts;
mod judge;
mod kind;
mod layout;
mod mutants;
mod net;
mod node;
mod patch;
mod rules;
mod runner;
mod setup;
mod strangers;
mod trace;
mod wire;
mod world;

pub use calls::{Call, Calls, LAPSES};
pub use config::Config;
pub use counts::Counts;
pub use judge::{Invariant, Violation};
pub use kind::Kind;
pub use mutants::{Mutant, mutants};
pub use patch::Patch;
pub use rules::Flaw;
pub use runner::{Failure, Model, Report, Summary};
