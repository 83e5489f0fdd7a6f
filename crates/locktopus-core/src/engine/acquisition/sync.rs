//! The synchronisation types of slots and local queue. `tests/interleavings.rs` compiles the same code against loom's types.

pub(super) use std::sync::atomic::{AtomicU8, Ordering};
pub(super) use std::sync::{Arc, Mutex};

pub(super) use locktopus_contract::lock;
