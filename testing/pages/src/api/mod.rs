//! The documentation of public items: whether each item that users call has a compiled example,
//! lists its errors, and says what happens when its future is dropped.
//!
//! Reads the sources as rustc would: from the roots of crates along `mod` and `pub use`.
//!
//! | module | what is in it |
//! |---|---|
//! | `source` | the modules of one crate, parsed |
//! | `reach` | which of them are public, and the type that users find them under |
//! | `item` | one public item: its documentation, and its signature as far as the rules care |
//! | `rules` | what the documentation of each item must have |
//! | `units` | times that are bare numbers |

mod item;
mod reach;
mod rules;
mod source;
mod units;

pub use item::{Item, Sort};
pub use reach::public_items;
pub use rules::{Lack, lacks};
pub use source::Sources;
