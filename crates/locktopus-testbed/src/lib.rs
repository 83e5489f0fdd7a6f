//! Servers for the tests and benchmarks of Locktopus: real ones, which can be broken on purpose.
//!
//! [`topology`] starts Redis and Valkey servers, as child processes or (feature `pod`) in containers, waits until they are
//! ready, kills or isolates them when a test says so, and always removes them. [`peers`] (feature `redisson`) runs
//! other lock libraries on the same servers.
//!
//! Not published: it is fitted to this repository. Container images come from its `scripts/build-images`, the
//! program that runs Redisson is built from its sources, and interfaces change whenever a test here needs it. Authors
//! of backends need `locktopus-conformance`, which starts no servers.

#[cfg(all(feature = "redisson", unix))]
pub mod peers;
#[cfg(unix)]
pub mod topology;
