//! Locktopus over the redis-rs client.
