//! The findings of a run.

use std::fmt;
use std::time::Duration;

use crate::flavour::Flavour;

/// How a case ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "it is complete")]
pub enum Verdict {
    /// The rule is kept.
    Passed,
    /// The case does not apply, and why.
    Skipped(String),
    /// The rule is broken, and how.
    Failed(String),
}

/// A case that was run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Outcome {
    /// Name and flavour of the case.
    pub name: String,
    /// The flavour it ran on.
    pub flavour: Flavour,
    /// How it ended.
    pub verdict: Verdict,
    /// How long it took.
    pub took: Duration,
}

/// All cases of a run. Its `Display` shows one line a case.
#[derive(Debug, Clone)]
#[must_use = "failures are in here; call `assert_passed`"]
pub struct Report {
    outcomes: Vec<Outcome>,
    took: Duration,
}

impl Report {
    pub(super) fn new(mut outcomes: Vec<Outcome>, took: Duration) -> Self {
        outcomes.sort_by(|a, b| a.name.cmp(&b.name));
        Self { outcomes, took }
    }

    /// Every case, by name.
    #[must_use]
    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    /// The cases that failed, with what they found.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.outcomes.iter().filter_map(|o| match &o.verdict {
            Verdict::Failed(what) => Some((o.name.as_str(), what.as_str())),
            Verdict::Passed | Verdict::Skipped(_) => None,
        })
    }

    /// Prints the report.
    ///
    /// # Panics
    ///
    /// If a case failed, or if none ran: a suite that does nothing proves nothing.
    #[track_caller]
    pub fn assert_passed(&self) {
        println!("{self}");
        let passed = |o: &Outcome| o.verdict == Verdict::Passed;
        assert!(self.outcomes.iter().any(passed), "no case was run");
        let failures: Vec<_> = self
            .failures()
            .map(|(name, what)| format!("{name}: {what}"))
            .collect();
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut passed, mut skipped, mut failed) = (0, 0, 0);
        for Outcome {
            name,
            verdict,
            took,
            ..
        } in &self.outcomes
        {
            match verdict {
                Verdict::Passed => {
                    passed += 1;
                    writeln!(f, "case {name} ... ok ({} ms)", took.as_millis())?;
                }
                Verdict::Skipped(reason) => {
                    skipped += 1;
                    writeln!(f, "case {name} ... skipped: {reason}")?;
                }
                Verdict::Failed(what) => {
                    failed += 1;
                    writeln!(f, "case {name} ... FAILED: {what}")?;
                }
            }
        }
        let took = self.took;
        write!(
            f,
            "conformance: {passed} passed, {failed} failed, {skipped} skipped in {took:.1?}"
        )
    }
}
