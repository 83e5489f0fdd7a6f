//! What must hold for any bytes that somebody gives Locktopus, as functions that take bytes and
//! panic if it does not hold.
//!
//! | target | bytes are |
//! |---|---|
//! | [`names()`] | names of locks, and what is made of them |
//! | [`urls()`] | backend URLs, and a secret that somebody wrote into one |
//! | [`plans()`] | scenario files and failover plans of the harness |
//! | [`replies()`] | answers of a server to any call |
//! | [`ids()`] | owner ids, tickets, fences, and what instances say about themselves |
//!
//! `tests/fuzz.rs` runs them over the files of `corpus`, and over random changes of these.
//! `LOCKTOPUS_FUZZ` says how many of these are tried of each target, `LOCKTOPUS_FUZZ_SEED` what
//! they are made from. Whatever once failed is kept in `corpus`.
//!
//! A fuzzer that is led by coverage needs a function of bytes, and can have these as they are, on a
//! nightly compiler:
//!
//! ```text
//! cargo fuzz init && cargo add --manifest-path fuzz/Cargo.toml --path proof/fuzz
//! // fuzz/fuzz_targets/urls.rs
//! libfuzzer_sys::fuzz_target!(|data: &[u8]| locktopus_fuzz::urls(data));
//! cargo fuzz run urls proof/fuzz/corpus/urls
//! ```

mod ids;
mod input;
mod names;
mod plans;
mod replies;
mod urls;

pub use ids::ids;
pub use names::names;
pub use plans::plans;
pub use replies::replies;
pub use urls::urls;

/// A function of bytes, and its name, which is also that of its corpus.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: [Target; 5] = [
    ("names", names),
    ("urls", urls),
    ("plans", plans),
    ("replies", replies),
    ("ids", ids),
];
