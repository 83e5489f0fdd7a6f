//! `locktopus-bench` is two programs on the same ground: one measures contention, the other does faults to servers.
//!
//! | folder | what is in it |
//! |---|---|
//! | `cmd` | the command line: one file per subcommand, exit codes |
//! | `measure` | `run`, `report`, `compare`, `targets`: latency and cost of locks on real servers, as HDR histograms |
//! | `failover` | `failover`, `failover-report`: what happens to locks while servers, connections and processes fail |
//! | `shared` | what both need: which libraries can be asked for locks, where a run was made, numbers, tables and drawings |
//!
//! Neither of the two programs knows the other.
//!
//! Layers, lowest first: shared, measure|failover, cmd.

pub mod cmd;
pub mod failover;
pub mod measure;
pub mod shared;
