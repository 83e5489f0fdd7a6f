//! The subscribed channels, and the server that carries each.

pub(crate) mod placements;
pub(crate) mod pubsub;
