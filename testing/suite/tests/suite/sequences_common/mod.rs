//! Random sequences of calls of a few owners on one lock. Each answer is compared with a sequential
//! reference.
//!
//! | file | what is in it |
//! |---|---|
//! | `calls` | the calls and their callers |
//! | `reference` | the effect of each call: no clock but a number, no messages, no store |
//! | `generate` | generates sequences, and shrinks failing ones |
//! | `subject` | makes the calls on the backend and compares |
//!
//! `LOCKTOPUS_SEQUENCES` sets how many sequences of each kind are tried, and
//! `LOCKTOPUS_SEQUENCES_SEED` their seed. By default they are the same every time.
#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    reason = "helpers of tests are tests too"
)]

mod calls;
mod generate;
mod reference;
mod subject;

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use locktopus_conformance::Flavour;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};

pub use calls::Call;
pub use reference::Reference;
pub use subject::Subject;

/// A setting that is a number.
fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable}={text}: not a number")),
    )
}

/// How many sequences of each kind to try. With none, every test would pass.
pub fn asked(number: Option<u64>, by_default: u32) -> u32 {
    let cases = number.map_or(by_default, |cases| cases.try_into().unwrap());
    assert!(cases > 0, "no sequence would be tried");
    cases
}

/// Tries sequences of calls on locks of a flavour. `timed`: leases end within them. `play` makes
/// the calls of one sequence.
pub fn hold(
    flavour: Flavour,
    timed: bool,
    cases: u32,
    play: impl Fn(Sequence) -> Result<(), String>,
) {
    let seed = number("LOCKTOPUS_SEQUENCES_SEED").unwrap_or(1);
    let cases = asked(number("LOCKTOPUS_SEQUENCES"), cases);
    let config = Config {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..Config::default()
    };
    let tried = TestRunner::new(config).run(
        &generate::sequences(flavour, timed),
        |(reference, calls, seen)| {
            let calls = calls.into_iter().inspect(move |_| {
                // Shrinking can drop calls that were never made.
                if let Some(seen) = &seen {
                    seen.fetch_add(1, Ordering::SeqCst);
                }
            });
            let calls = Box::new(calls);
            play(Sequence { reference, calls }).map_err(TestCaseError::fail)
        },
    );
    match tried {
        Ok(()) => println!("{}: {cases} sequences, seed {seed}", flavour.as_str()),
        Err(TestError::Fail(why, (reference, calls, _))) => {
            panic!(
                "{}, seed {seed}: {why}\n{}",
                flavour.as_str(),
                listed(&reference, &calls)
            )
        }
        Err(TestError::Abort(why)) => panic!("{}: {why}", flavour.as_str()),
    }
}

/// One sequence: the state before it, and the calls.
pub struct Sequence {
    pub reference: Reference,
    pub calls: Box<dyn Iterator<Item = Call> + Send>,
}

impl Sequence {
    /// Makes all calls, and checks what is left.
    pub async fn play(self, mut subject: Subject) -> Result<(), String> {
        let mut reference = self.reference;
        for (number, call) in self.calls.chain([Call::Look]).enumerate() {
            let said = reference.call(&call);
            let done = subject.call(&reference, &call, &said).await;
            done.map_err(|why| format!("call {}, {call:?}: {why}", number + 1))?;
        }
        subject.ends().await;
        Ok(())
    }
}

fn listed(reference: &Reference, calls: &[Call]) -> String {
    let mut text = reference.slots();
    for (number, call) in calls.iter().enumerate() {
        let _ = writeln!(text, "{:3}. {call:?}", number + 1);
    }
    let _ = writeln!(text, "{:3}. {:?}", calls.len() + 1, Call::Look);
    text
}
