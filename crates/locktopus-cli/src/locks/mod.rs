//! From arguments to a lock.

mod connect;
mod kind;
mod look;
mod profile;
mod terms;

pub(crate) use connect::{close, connect, connect_to};
pub(crate) use kind::{Asked, Kind, LockArgs};
#[cfg(test)]
pub(crate) use look::{Holder, Waiter};
pub(crate) use look::{Seen, Shown, busy, find};
pub(crate) use terms::{Lasting, Terms, acquire, request};
