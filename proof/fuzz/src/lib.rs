//! Rules for arbitrary input to Locktopus, as functions that take bytes and panic if a rule is
//! broken.
//!
//! | target | bytes are |
//! |---|---|
//! | [`names()`] | names of locks, and the keys derived from them |
//! | [`urls()`] | backend URLs, and a secret in one |
//! | [`plans()`] | scenario files and failover plans of the harness |
//! | [`replies()`] | answers of a server to any call |
//! | [`ids()`] | owner ids, tickets, fences, and the records of instances |
//!
//! `tests/fuzz.rs` runs them on the files of `corpus`, and on random changes of these files.
//! `LOCKTOPUS_FUZZ` sets how many changes are tried for each target, and `LOCKTOPUS_FUZZ_SEED`
//! their seed. Every input that ever failed stays in `corpus`.
//!
//! A coverage-guided fuzzer needs a function of bytes, and can use these functions unchanged, on a
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

/// A function of bytes, and the name of it and of its corpus.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 5] = [
    ("names", names),
    ("urls", urls),
    ("plans", plans),
    ("replies", replies),
    ("ids", ids),
];
