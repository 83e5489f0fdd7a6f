//! `locktopus-bench` is three programs on common ground: one measures contention, one injects
//! faults into servers, one runs for a long time.
//!
//! | folder | what is in it |
//! |---|---|
//! | `cmd` | the command line: one file per subcommand, exit codes |
//! | `measure` | `run`, `report`, `targets`: latency and cost of locks, in histograms |
//! | `failover` | `failover`, `failover-report`: locks while servers and processes fail |
//! | `soak` | `soak`: many locks for a long time, and nothing left at the end |
//! | `shared` | common parts: lock libraries, the origin of a run, numbers, tables and drawings |
//!
//! None of the programs knows another.
//!
//! Layers, lowest first: shared, measure|failover|soak, cmd.

pub mod cmd;
pub mod failover;
pub mod measure;
pub mod shared;
pub mod soak;
