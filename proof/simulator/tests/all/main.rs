//! All tests of the simulator in one program, because linking one for each file took most of the
//! build time.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod common;
mod crowds;
mod evictions;
mod excused;
mod order;
mod planted;
mod script_mutants;
mod simulation;
mod undone;
mod waiting;
mod witnessed;
