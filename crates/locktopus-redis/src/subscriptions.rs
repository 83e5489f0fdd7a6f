//! Which channels are subscribed to, and on which server each is.

pub(crate) mod placements;
pub(crate) mod pubsub;
