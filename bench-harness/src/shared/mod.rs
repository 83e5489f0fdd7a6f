//! The common parts of measurements and fault runs.
//!
//! | file | what is in it |
//! |---|---|
//! | `locking` | the ways of locking that are compared: kinds, clients, other libraries |
//! | `provenance` | the origin of a report: the run, this build, the machine |
//! | `render` | numbers, terminal tables, scales and SVG |
//! | `stall` | how the machine disturbed a measurement |
//! | `completeness` | what counts, and what is empty or failed |
//! | `random` | reproducible random numbers |
//! | `error_chain` | an error with its causes, in one line |
//! | `file` | files that people pass, and what is wrong with them |
//! | `names` | names of enumerations |

pub mod completeness;
pub(crate) mod error_chain;
pub mod file;
pub mod locking;
pub(crate) mod names;
pub mod provenance;
pub(crate) mod random;
pub mod render;
pub mod stall;
