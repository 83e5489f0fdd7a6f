//! Tests of the crate `locktopus` that need servers: both clients, every topology, and what happens
//! when servers fail.
//!
//! They are a crate of their own, which is not published, so that neither the features nor the
//! dependencies that only these tests need (containers, Redisson, the test servers) are features
//! and dependencies of `locktopus`. What needs no server is tested beside the code of `locktopus`.
//!
//! The examples of guides are compiled and run here: published crates are built from tarballs that
//! have no `docs`.

#[cfg(doctest)]
#[doc = include_str!("../../../docs/write-a-backend.md")]
struct WriteABackend;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/fencing.md")]
struct FencingGuide;
