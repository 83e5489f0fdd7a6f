//! One connection to one server: how to make, keep, replace and use it.

pub(crate) mod address;
pub(crate) mod conn;
pub(crate) mod dial;
pub(crate) mod error;
pub(crate) mod link;
pub(crate) mod links;
pub(crate) mod messages;
pub(crate) mod reply;
pub(crate) mod request;
pub(crate) mod sentinel;
pub(crate) mod tls;

/// This client's name in errors and metrics.
pub(crate) const NAME: &str = "fred";
