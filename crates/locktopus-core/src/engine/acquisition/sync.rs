//! What the slots and the local queue synchronise with. `tests/interleavings.rs` compiles them against loom's types instead.

pub(super) use std::sync::atomic::{AtomicU8, Ordering};
pub(super) use std::sync::{Arc, Mutex};

pub(super) use crate::contract::sync::lock;
