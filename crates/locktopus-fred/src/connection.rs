//! One connection to one server: how it is made, kept and replaced, and what is sent over it.

pub(crate) mod address;
pub(crate) mod conn;
pub(crate) mod dial;
pub(crate) mod error;
pub(crate) mod link;
pub(crate) mod messages;
pub(crate) mod reply;
pub(crate) mod request;
pub(crate) mod sentinel;
pub(crate) mod tls;

/// What this client is called where it is told from others: in errors and metrics.
pub(crate) const NAME: &str = "fred";
