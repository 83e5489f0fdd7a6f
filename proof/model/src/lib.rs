//! The real scripts, in an embedded Lua, on a modelled server with a virtual clock.
//!
//! | module | what is in it |
//! |---|---|
//! | `redis` | the modelled server: commands, keys, expiry, a clock that tests move |
//! | `lua` | lock scripts, run in Lua 5.1 on such a server |
//! | `layout` | reads the keys of a lock: who holds it, who waits |
//! | `transcripts` | recorded sequences of calls with their results, and a player for them |
//! | `client` | a client of a modelled server, to run a whole backend on one |
//! | `rng` | random numbers that a seed determines |

mod client;
pub mod layout;
pub mod lua;
pub mod redis;
mod rng;
pub mod transcripts;

pub use client::{ModelClient, Pass, was_here};
pub use rng::Rng;
