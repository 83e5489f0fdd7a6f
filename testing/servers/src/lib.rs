//! Servers for the tests and benchmarks of Locktopus: real ones that tests can break on purpose.
//!
//! [`topology`] starts Redis and Valkey servers, as child processes or (feature `pod`) in
//! containers. It waits until they are ready, kills or isolates them when a test says so, and
//! always removes them. [`rights`] lists the rights that users of them need. [`peers`] are other
//! lock libraries on the same servers: Redisson itself (feature `redisson`), or its scripts.
//!
//! Not published, because it is tied to this repository: `scripts/build-images` makes the container
//! images, the program that runs Redisson is built from sources here, and interfaces change
//! whenever a test needs it. Authors of backends need `locktopus-conformance`, which starts no
//! servers.

#[cfg(unix)]
mod pause;
#[cfg(unix)]
pub mod peers;
#[cfg(unix)]
pub mod rights;
mod skip;
#[cfg(unix)]
pub mod topology;

#[cfg(unix)]
pub use pause::Pause;
pub use skip::{in_ci, pod_or_skip, reason_in, skipped};
