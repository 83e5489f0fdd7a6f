//! Tests that need no server, in one program: linking one for each file took most of the build
//! time.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod conformance_layers;
mod layers_calls;
mod layers_chaos;
mod layers_recorded;
