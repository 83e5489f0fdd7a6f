//! Turns arguments into a lock.

mod connect;
mod inspect;
mod kind;
mod label;
mod name;
mod person;
mod terms;

pub(crate) use connect::{close, connect, connect_as, connect_to};
#[cfg(test)]
pub(crate) use inspect::Waiter;
pub(crate) use inspect::{Found, Holder, KEPT, LockView, busy, find, unknown_number};
pub(crate) use kind::LockArgs;
pub(crate) use label::LabelArgs;
pub(crate) use name::NameArg;
#[cfg(test)]
pub(crate) use person::Person;
pub(crate) use person::ask;
pub(crate) use terms::{Lasting, Terms, acquire, request};
