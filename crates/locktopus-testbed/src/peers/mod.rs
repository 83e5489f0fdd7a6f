//! Other lock libraries, as they are, to meet on the same servers.

pub mod redisson;
