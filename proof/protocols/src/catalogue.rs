//! All runs: each model as shipped, and with one rule left out.

/// The run of a model without one of its rules: the change, the rule and the property that then
/// breaks, the bounds, and the function that runs it.
macro_rules! without {
    ($rule:ident: $value:expr, $what:literal, $breaks:expr, $bounds:literal, run($($bound:expr),+)) => {
        Case::without(NAME, ($what, $breaks), $bounds, || {
            run(Rules { $rule: $value, ..RULES }, $($bound),+)
        })
    };
}

mod hand_off;
mod quarantine;
mod quorum;

use crate::explore::{Outcome, Protocol, explore};

/// One run.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// The model.
    pub model: &'static str,
    /// Its bounds.
    pub bounds: &'static str,
    /// The rule that is left out, if any, and the property that then breaks.
    pub without: Option<(&'static str, &'static str)>,
    /// Kinds of actions that cannot occur within these bounds.
    pub cannot: &'static [&'static str],
    /// Whether it takes too long to run for each change.
    pub long: bool,
    run: fn() -> Outcome,
}

impl Case {
    const fn shipped(model: &'static str, bounds: &'static str, run: fn() -> Outcome) -> Self {
        Self {
            model,
            bounds,
            without: None,
            cannot: &[],
            long: false,
            run,
        }
    }

    const fn without(
        model: &'static str,
        (rule, breaks): (&'static str, &'static str),
        bounds: &'static str,
        run: fn() -> Outcome,
    ) -> Self {
        Self {
            without: Some((rule, breaks)),
            ..Self::shipped(model, bounds, run)
        }
    }

    const fn cannot(self, cannot: &'static [&'static str]) -> Self {
        Self { cannot, ..self }
    }

    const fn long(self) -> Self {
        Self { long: true, ..self }
    }

    /// Visits its states.
    #[must_use]
    pub fn run(&self) -> Outcome {
        (self.run)()
    }

    /// Checks an outcome: as shipped nothing may break and every action must occur, and with a rule
    /// left out that property must break.
    ///
    /// # Errors
    ///
    /// The problem, in words.
    pub fn judge(&self, outcome: &Outcome) -> Result<(), String> {
        let broken = outcome.broken.as_ref();
        match (self.without, broken) {
            (None, Some(broken)) => Err(format!(
                "{} ({}): {:?} does not hold after {:#?}",
                self.model, self.bounds, broken.property, broken.actions
            )),
            (None, None) if outcome.missing != self.cannot => Err(format!(
                "{} ({}): actions never occurred: {:?}, expected {:?}",
                self.model, self.bounds, outcome.missing, self.cannot
            )),
            (None, None) if outcome.states < 10_000 => Err(format!(
                "{} ({}) has only {} states",
                self.model, self.bounds, outcome.states
            )),
            (Some((rule, breaks)), found) if found.map(|it| it.property) != Some(breaks) => {
                Err(format!(
                    "{} without {rule:?}: expected that {breaks:?} breaks, and found {found:#?} in {} states",
                    self.model, outcome.states
                ))
            }
            _ => Ok(()),
        }
    }
}

/// All runs.
#[must_use]
pub fn all() -> Vec<Case> {
    [hand_off::CASES, quarantine::CASES, quorum::CASES].concat()
}

fn visit<M>(model: M) -> Outcome
where
    M: Protocol + Send + Sync + 'static,
    M::Action: Clone + PartialEq + std::fmt::Debug,
    M::State: std::fmt::Debug,
{
    explore(model)
}
