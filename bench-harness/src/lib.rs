//! `locktopus-bench` is three programs on the same ground: one measures contention, one does faults
//! to servers, one goes on for long.
//!
//! | folder | what is in it |
//! |---|---|
//! | `cmd` | the command line: one file per subcommand, exit codes |
//! | `measure` | `run`, `report`, `compare`, `targets`: latency and cost of locks on real servers, as HDR histograms |
//! | `failover` | `failover`, `failover-report`: what happens to locks while servers, connections and processes fail |
//! | `soak` | `soak`: many locks for a long time, and nothing left at the end |
//! | `shared` | what all need: which libraries can be asked for locks, where a run was made, numbers, tables and drawings |
//!
//! None of the programs knows another.
//!
//! Layers, lowest first: shared, measure|failover|soak, cmd.

pub mod cmd;
pub mod failover;
pub mod measure;
pub mod shared;
pub mod soak;
