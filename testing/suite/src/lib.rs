//! Tests of the crate `locktopus` that need servers: both clients, every topology, and failing
//! servers.
//!
//! They are a crate of their own, which is not published. So the features and dependencies that
//! only these tests need (containers, Redisson, the test servers) stay out of `locktopus`. Tests
//! that need no server are beside the code of `locktopus`.
//!
//! The examples of guides are compiled and run here, because published crates are built from
//! tarballs without `docs`.

#[cfg(doctest)]
#[doc = include_str!("../../../docs/write-a-backend.md")]
struct WriteABackend;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/fencing.md")]
struct FencingGuide;
