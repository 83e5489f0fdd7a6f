//! Random schedules of simulated clients on modelled servers.
//!
//! A seed decides everything: how many processes there are and what they like to do, how fast their clocks are, what
//! the network does to each message, who stops, who dies, and when. One schedule is a few seconds of virtual time.
//! While it runs a judge looks at every script and at everything that a process believes; see [`Invariant`].
//!
//! | modules | what is in them |
//! |---|---|
//! | `runner`, `config`, `setup` | runs schedules, replays those that fail; what is chosen, what a seed decides |
//! | `world`, `net`, `node`, `actor` | events and faults, the network, the servers, the clocks of processes |
//! | `client`, `rules`, `strangers` | the clients, what they do alike, and clients of other kinds |
//! | `ask`, `wire`, `kind`, `layout` | what clients ask; scripts, keys and replies; what keys say |
//! | `judge` | what must never happen |
//! | `mutants`, `patch` | wrong clients and scripts that the model must notice |
//! | `calls`, `counts`, `trace` | calls for comparison with a real server; statistics; what happened, line by line |
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

pub use ask::{Holder, Mode, Owner, Waiter};
pub use calls::{Call, Calls, LAPSES};
pub use config::Config;
pub use counts::Counts;
pub use judge::{Invariant, Violation};
pub use kind::Kind;
pub use layout::{Layout, owner_of};
pub use mutants::{Mutant, mutants};
pub use patch::Patch;
pub use rules::Flaw;
pub use runner::{Failure, Model, Report, Summary};
