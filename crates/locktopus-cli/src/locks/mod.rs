//! Turns arguments into a lock.

mod connect;
mod kind;
mod label;
mod look;
mod name;
mod person;
mod terms;

pub(crate) use connect::{close, connect, connect_as, connect_to};
pub(crate) use kind::LockArgs;
pub(crate) use label::LabelArgs;
#[cfg(test)]
pub(crate) use look::Waiter;
pub(crate) use look::{Holder, Seen, Shown, busy, find};
pub(crate) use name::NameArg;
#[cfg(test)]
pub(crate) use person::Person;
pub(crate) use person::ask;
pub(crate) use terms::{Lasting, Terms, acquire, request};
