//! Other lock libraries on the same servers: real ones, or simulated by their scripts.

#[cfg(feature = "redisson")]
pub mod redisson;
pub mod redisson_scripts;
