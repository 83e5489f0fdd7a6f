//! All tests without a server, in one program: linking one per file took most of the build time.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod cancel;
mod conformance_memory;
mod mutants;
