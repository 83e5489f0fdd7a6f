//! Servers as child processes on loopback: how one runs, and the removal of those whose harness
//! died.

pub(crate) mod clock;
mod owner;
mod process;
pub(crate) mod program;
mod run_dir;
mod supervisor;
mod sweep;

pub use clock::clock_or_skip;
#[cfg(feature = "pod")]
pub(crate) use owner::Owner;
pub(crate) use process::Process;
pub(crate) use run_dir::RunDir;
pub(crate) use sweep::sweep;
