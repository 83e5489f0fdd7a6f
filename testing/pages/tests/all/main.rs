//! What needs no server, in one program: linking one for each file took most of the time of a
//! build.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod api;
mod pages;
mod preprocessor;
