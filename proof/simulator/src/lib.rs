//! The shipped client in a simulator: random schedules of the real API, engine, protocol and quorum
//! on modelled servers.
//!
//! A [`Plan`] is one schedule as data, drawn from a seed, and [`run`] executes it. Each process has
//! its own runtime, whose clock advances only when the simulator lets it. So a process can be
//! stopped, and a seed replays exactly.
//!
//! | modules | what is in them |
//! |---|---|
//! | `plan`, `promises`, `draw` | a schedule; its promises; drawing one from a seed |
//! | `run`, `process`, `pace` | runs a schedule; processes and their true time |
//! | `world`, `event`, `link`, `node` | the events under way; connections; servers |
//! | `connecting` | how connections break and are made again |
//! | `serve`, `replication`, `slots`, `cluster`, `faults` | servers, slots and faults |
//! | `client` | the client under the shipped backend |
//! | `neighbour`, `object`, `ears` | processes of Redisson and redis-py, and how they wake |
//! | `task`, `together`, `asking`, `keeper`, `held`, `log` | applications, and their logs |
//! | `witness` | what no script may do |
//! | `judge`, `stall`, `failures`, `leftover` | the rules that no run may break |
//! | `shrink`, `report` | shrinks a failing schedule, and prints it |
//! | `flaw`, `wrong_scripts` | planted faults; scripts with one rule broken |
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
mod known_script;
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
