//! What somebody sees who looks a public item up: whether each item that users call has an example
//! that is compiled, and says what goes wrong and what happens when its future is dropped.
//!
//! Read from the sources, as rustc would read them: from the roots of crates along `mod` and `pub
//! use`.
//!
//! | module | what is in it |
//! |---|---|
//! | `source` | the modules of one crate, parsed |
//! | `reach` | what is public of them, and under which type it is found |
//! | `item` | one public item: its documentation, and its signature as far as the rules care |
//! | `rules` | what each item has to have |
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
