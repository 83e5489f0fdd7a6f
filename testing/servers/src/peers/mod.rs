//! Other lock libraries, to meet on the same servers: as they are, or played by their scripts.

#[cfg(feature = "redisson")]
pub mod redisson;
pub mod redisson_scripts;
