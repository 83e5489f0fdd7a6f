//! The shipped client in a simulator: random schedules of the real API, engine, protocol and quorum
//! on modelled servers.
//!
//! A [`Plan`] is one schedule as data, drawn from a seed. [`run`] carries it out. Each process has
//! a runtime of its own whose clock stands still unless the simulator lets it go on, so a process
//! can be stopped, and a seed replays.
//!
//! | modules | what is in them |
//! |---|---|
//! | `plan`, `promises`, `draw` | a schedule; what is promised with its faults; one for each seed |
//! | `run`, `process`, `pace` | runs one; processes, and what time it truly is for them |
//! | `world`, `event`, `link`, `node` | what is under way; connections; servers |
//! | `connecting` | how connections break and are made again |
//! | `serve`, `replication`, `slots`, `cluster`, `faults` | what servers do; what replicas hear; slots, and how they move; what goes wrong |
//! | `client` | what the shipped backend talks to |
//! | `neighbour`, `object`, `ears` | processes of Redisson and redis-py; what they send; how they are woken |
//! | `task`, `together`, `asking`, `keeper`, `held`, `log` | what applications do with locks, and what they saw |
//! | `witness` | what no script may do |
//! | `judge`, `stall`, `failures`, `leftover` | what must never be |
//! | `shrink`, `report` | cuts a schedule that fails down to what it takes, and shows it
//! | `flaw`, `wrong_scripts` | faults that are planted to see whether the judge notices; scripts with one rule broken |
//!
//! Layers, lowest first: plan, promises, violation, trace, wrong_scripts, flaw, event, link, log,
//! node, slots, witness, world, connecting, pace, serve, replication, cluster, faults, client,
//! held, asking, keeper, task, together, ending, counting, object, ears, neighbour, stall, judge,
//! failures, leftover, process, draw, run, shrink, report.

mod asking;
mod client;
mod cluster;
mod connecting;
mod counting;
mod draw;
mod ears;
mod ending;
mod event;
mod failures;
mod faults;
mod flaw;
mod held;
mod judge;
mod keeper;
mod leftover;
mod link;
mod log;
mod neighbour;
mod node;
mod object;
mod pace;
mod plan;
mod process;
mod promises;
mod replication;
mod report;
mod run;
mod serve;
mod shrink;
mod slots;
mod stall;
mod task;
mod together;
mod trace;
mod violation;
mod witness;
mod world;
mod wrong_scripts;

pub use draw::Focus;
pub use flaw::Flaw;
pub use plan::{Act, Count, End, Fault, Kind, Lock, Plan, ProcessPlan, Strategy, Wait};
pub use report::report;
pub use run::{Outcome, run};
pub use shrink::shrink;
pub use violation::Violation;
pub use wrong_scripts::{Patch, WrongScript, wrong_scripts};
