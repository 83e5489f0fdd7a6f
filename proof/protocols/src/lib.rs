//! The protocols of Locktopus as small models whose every state is visited.
//!
//! | module | why it exists |
//! |---|---|
//! | `hand_off` | a release hands the lock to the next waiter, wherever clients are subscribed |
//! | `quarantine` | nothing is granted after a failover until forgotten leases are over |
//! | `quorum` | a majority of independent nodes agrees |
//! | `explore` | visits every state of a model, with the crate `stateright` |
//! | `catalogue` | which models are visited, their bounds, and which rules are left out |
//! | `page` | the tables in proof/protocols/README.md |
//!
//! Layers, lowest first: explore, hand_off|quarantine|quorum, catalogue, page.

pub mod catalogue;
pub mod explore;
pub mod hand_off;
pub mod page;
pub mod quarantine;
pub mod quorum;
