//! Redisson itself, in its own process: the counterpart in interop tests, and a peer that the bench
//! harness measures.
//!
//! The Java side is in `bench-harness/peers/redisson`. [`Jar::find_or_build`] builds it with Maven
//! into cargo's target directory when it is missing or old, or takes the file that
//! `LOCKTOPUS_REDISSON_JAR` names. [`Redisson`] starts it and sends commands to its threads.
//!
//! ```no_run
//! use locktopus_servers::peers::redisson::{Jar, Redisson, RedissonError, Reply};
//!
//! # async fn example() -> Result<(), RedissonError> {
//! let jar = Jar::find_or_build().await?;
//! let java = Redisson::start(&jar, "redis://127.0.0.1:6379").await?;
//! let (mut holder, mut waiter) = (java.thread(), java.thread());
//! assert_eq!(holder.ask(&["lock", "lock", "invoice", "30000"]).await?, Reply::Done);
//! waiter.tell(&["lock", "lock", "invoice"]).await?;
//! assert_eq!(holder.ask(&["lock", "unlock", "invoice"]).await?, Reply::Done);
//! assert_eq!(waiter.reply().await?, Reply::Done);
//! java.exit().await
//! # }
//! ```

mod error;
mod jar;
mod maven;
mod reply;
mod session;
mod skip;
mod tools;

pub use error::RedissonError;
pub use jar::Jar;
pub use reply::Reply;
pub use session::{JavaThread, Redisson};
pub use skip::jar_or_skip;
