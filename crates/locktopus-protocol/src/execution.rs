//! How a script is run: the executor and its rules for repeating, calls that travel together,
//! `WAIT` for replicas, the quarantine after a failover.

pub(crate) mod call;
pub(crate) mod executor;
pub(crate) mod gather;
pub(crate) mod quarantine;
pub(crate) mod refusals;
pub(crate) mod replication;
