//! Tests the book (`docs/SUMMARY.md`): every example of its chapters is a test of this crate, and
//! every link of every page is checked. Also checks the documentation of the API: see `api`.
//!
//! The program of this crate is a preprocessor for mdBook, see `main.rs`; `scripts/book` builds the
//! book.

pub mod api;
mod chapter;
mod item;
mod links;
mod repository;
mod units;

pub use chapter::Book;
pub use links::{Link, anchors, links};
pub use repository::{Place, REPOSITORY_URL, Repository};

/// Makes tests of the examples of chapters. The examples of other pages are tests of the crates
/// that the pages are about.
macro_rules! chapters {
    ($($name:ident: $path:literal,)*) => {
        $(
            #[cfg(doctest)]
            #[doc = include_str!(concat!("../../../docs/book/", $path))]
            mod $name {}
        )*

        /// The chapters whose examples are tests, relative to `docs/book`.
        pub const TESTED: &[&str] = &[$($path),*];
    };
}

chapters! {
    start: "start.md",
    choose: "choose.md",
    lock: "kinds/lock.md",
    fair_lock: "kinds/fair-lock.md",
    mutex: "kinds/mutex.md",
    rw_lock: "kinds/rw-lock.md",
    semaphore: "kinds/semaphore.md",
    permit_semaphore: "kinds/permit-semaphore.md",
    rate_limiter: "kinds/rate-limiter.md",
    latch: "kinds/latch.md",
    multi: "kinds/multi.md",
    quorum: "kinds/quorum.md",
    leader_and_job: "kinds/leader-and-job.md",
    leases: "leases.md",
    waiting: "waiting.md",
    operating: "operating.md",
    faq: "faq.md",
    testing_your_code: "testing-your-code.md",
    redisson: "from/redisson.md",
    rslock: "from/rslock.md",
    redsync: "from/redsync.md",
    node_redlock: "from/node-redlock.md",
    redis_py: "from/redis-py.md",
    spring_shedlock: "from/spring-shedlock.md",
}
