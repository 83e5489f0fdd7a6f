//! The rule of what counts: nothing that is empty passes, and nothing that failed does.
//!
//! A run that granted nothing finds no overlap, and a cell that did not run breaks no promise.
//! Measurements and fault runs have different reports; both pass what they have as [`Evidence`].

use std::collections::BTreeMap;

/// The evidence that a part of a run happened.
#[derive(Debug)]
pub struct Evidence<'a, F> {
    /// Whether it granted locks, or achieved its purpose in another way.
    pub granted: bool,
    /// The numbers done and planned, with words for them: `(done, planned, "faults were done")`.
    pub done: Option<(u64, u64, &'static str)>,
    /// Failures, by kind.
    pub errors: &'a BTreeMap<String, u64>,
    /// Whether the plan explains errors of a kind.
    pub is_expected: F,
}

impl<F: Fn(&str) -> bool> Evidence<'_, F> {
    /// Why it does not count, a sentence each.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if !self.granted {
            problems.push("nothing was granted".to_owned());
        }
        if let Some((done, planned, what)) = self.done
            && done < planned
        {
            problems.push(format!("{done} of {planned} {what}"));
        }
        for (kind, count) in self.errors {
            if !(self.is_expected)(kind) {
                problems.push(format!(
                    "{count} times {kind:?}, which nothing here explains"
                ));
            }
        }
        problems
    }
}

/// The problem of a run without cells.
#[must_use]
pub fn nothing(parts: usize) -> Option<String> {
    (parts == 0).then(|| "no cell was run".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_empty_or_failed_is_a_problem() {
        let problems = |granted, done, errors: &[(&str, u64)]| {
            let errors = errors.iter().map(|&(kind, count)| (kind.to_owned(), count));
            let evidence = Evidence {
                granted,
                done: Some((done, 2, "faults were done")),
                errors: &errors.collect(),
                is_expected: |kind: &str| kind == "no answer",
            };
            evidence.problems()
        };
        assert_eq!(problems(true, 2, &[("no answer", 3)]), Vec::<String>::new());
        assert_eq!(problems(false, 2, &[]), ["nothing was granted"]);
        assert_eq!(problems(true, 1, &[]), ["1 of 2 faults were done"]);
        assert_eq!(
            problems(true, 2, &[("no answer", 3), ("other", 1)]),
            ["1 times \"other\", which nothing here explains"]
        );
        assert_eq!(nothing(0).as_deref(), Some("no cell was run"));
        assert_eq!(nothing(1), None);
    }
}
