//! One file for each command.

pub(crate) mod break_lock;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod failover;
pub(crate) mod harness;
pub(crate) mod job;
pub(crate) mod latch;
pub(crate) mod leader;
pub(crate) mod list;
pub(crate) mod pages;
pub(crate) mod run;
pub(crate) mod semaphore;
mod signals;
pub(crate) mod status;
pub(crate) mod ticket;
pub(crate) mod top;
pub(crate) mod watch;

use crate::config::Config;
use crate::output::Output;

/// The configuration and output of a command.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) config: Config,
    pub(crate) out: Output,
}
