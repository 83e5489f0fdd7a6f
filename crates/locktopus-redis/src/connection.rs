//! One connection to one server: how to make, keep, replace and use it.

pub(crate) mod dial;
pub(crate) mod error;
pub(crate) mod greeting;
pub(crate) mod health;
pub(crate) mod keepalive;
pub(crate) mod link;
pub(crate) mod reply;
pub(crate) mod send;
pub(crate) mod sentinel;
pub(crate) mod stream;
pub(crate) mod tls;

/// This client's name in errors and metrics.
pub(crate) const NAME: &str = "redis-rs";
