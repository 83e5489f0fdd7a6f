//! Tests that need no server, in one program: linking one per file took most of the build time.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod half_moved;
mod names;
mod repeated;
#[path = "../../src/client/stub.rs"]
mod stub;
mod undone;

use locktopus_protocol::{
    Channel, ClientError, Deployment, NodeReply, Pipelined, PushEvent, RedisClient, Reply, Route,
};
