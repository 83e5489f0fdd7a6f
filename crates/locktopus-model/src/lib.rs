//! The protocol model: the real scripts, in an embedded Lua, on a modelled server with a virtual clock.

mod client;
pub mod lua;
pub mod redis;
mod rng;
pub mod sim;

pub use client::{ModelClient, Pass};
pub use rng::Rng;
