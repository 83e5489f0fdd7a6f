//! All tests of the simulator in one program: linking one for each file took most of the time of a
//! build.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod common;
mod evictions;
mod excused;
mod planted;
mod script_mutants;
mod simulation;
mod undone;
mod waiting;
mod witnessed;
