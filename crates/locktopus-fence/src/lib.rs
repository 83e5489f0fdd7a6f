#![cfg_attr(docsrs, feature(doc_cfg))]
//! Fencing on the protected side: tokens that name their lock, and the check whether a holder may
//! still write.
//!
//! A holder calls `LockGuard::fence` and sends the [`Fence`] with each write. A resource inside
//! this process checks it with a [`FenceGate`]. `docs/fencing.md` has the same check for databases,
//! Redis, object stores and services.
//!
//! | module | what is in it |
//! |---|---|
//! | `mark` | a mark that tells holders apart |
//! | `fence` | the token, bound to its lock and its holder |
//! | `encoding` | a fence as one word of text, and back |
//! | `gate` | the check at a resource inside this process |
//!
//! Layers, lowest first: mark, fence, encoding|gate.

#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod encoding;
mod fence;
mod gate;
mod mark;
#[cfg(test)]
mod tests;

pub use encoding::FenceParseError;
pub use fence::Fence;
pub use gate::{FenceGate, StaleCause, StaleFence};
pub use mark::HolderMark;
