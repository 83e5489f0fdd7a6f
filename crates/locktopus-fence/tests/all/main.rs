//! Tests that need no server.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod object_store;
