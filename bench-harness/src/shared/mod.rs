//! What measuring and failover validation have in common.
//!
//! | file | what is in it |
//! |---|---|
//! | `locking` | the ways of locking that are compared: kinds, clients, other libraries |
//! | `provenance` | what a report says of its origin: the run, this build, the machine |
//! | `render` | numbers, terminal tables, scales and SVG |
//! | `stall` | what the machine did to a measurement |
//! | `completeness` | what counts, and what is empty or failed |
//! | `random` | reproducible random numbers |
//! | `error_chain` | an error with its causes, in one line |
//! | `names` | enumerations as they are written down |

pub mod completeness;
pub(crate) mod error_chain;
pub mod locking;
pub(crate) mod names;
pub mod provenance;
pub(crate) mod random;
pub mod render;
pub mod stall;
