//! Distributed locks over Redis and Valkey: the facade crate.
