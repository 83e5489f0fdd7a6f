//! The summary: tests that ran, skips with their reasons, and failures.

use std::collections::{BTreeMap, BTreeSet};

use crate::failure::{Done, Failure};
use crate::shell::{Cmd, Shell, minutes, say};

/// Filled while tests run, and printed at the end.
#[derive(Debug)]
pub(super) struct Summary {
    name: String,
    in_ci: bool,
    pub(super) outcome: Vec<String>,
    pub(super) failures: Vec<String>,
    /// All output of the tests, which need not be valid text.
    pub(super) log: Vec<u8>,
}

const SKIPPED: &str = "SKIPPED, NOT PASSED: ";

impl Summary {
    pub(super) fn new(sh: &Shell) -> Self {
        Self {
            name: sh.name.clone(),
            in_ci: sh.in_ci(),
            outcome: Vec::new(),
            failures: Vec::new(),
            log: Vec::new(),
        }
    }

    pub(super) fn outcome(&mut self, line: &str) {
        self.outcome.push(line.to_owned());
    }

    fn fail(&mut self, what: String) {
        eprintln!("{}: FAILED: {what}", self.name);
        self.failures.push(what);
    }

    /// Notes that this is left out; in CI that is a failure.
    pub(super) fn leave_out(&mut self, sh: &Shell, what: &str, why: &str) {
        self.do_without(sh, what, why);
        if self.in_ci {
            self.fail(format!("{what} cannot be left out in CI: {why}"));
        }
    }

    /// The same, but a failure only where everything is required.
    pub(super) fn do_without(&mut self, sh: &Shell, what: &str, why: &str) {
        self.outcome(&format!("SKIPPED  {what}: {why}"));
        sh.warn(format!("{SKIPPED}{what}: {why}"));
        if sh.all_required() {
            self.fail(format!("{what} cannot be left out, as LOCKTOPUS_REQUIRE_ALL is set: {why}"));
        }
    }

    /// Runs tests and keeps their output, which is shown as it arrives.
    pub(super) fn record(&mut self, tests: Cmd, what: &str) -> Done {
        if tests.recorded(&mut self.log)? != 0 {
            self.fail(what.to_owned());
        }
        Ok(())
    }

    /// The same for tests that ran in parallel, with this output.
    pub(super) fn told(&mut self, passed: bool, said: &str, what: &str) {
        say(said);
        self.log.extend_from_slice(said.as_bytes());
        self.log.push(b'\n');
        if !passed {
            self.fail(what.to_owned());
        }
    }

    /// Prints all of it; fails if something failed.
    pub(super) fn tell(mut self, seconds: u64) -> Done {
        for line in self.lines(seconds) {
            say(line);
        }
        if self.failures.is_empty() { Ok(()) } else { Err(Failure::Code(1)) }
    }

    fn lines(&mut self, seconds: u64) -> Vec<String> {
        let log = String::from_utf8_lossy(&self.log).into_owned();
        let passed = sum(&log, "passed;");
        let counts = format!(
            "{passed} passed, {} failed, {} ignored",
            sum(&log, "failed;"),
            sum(&log, "ignored;")
        );
        let mut lines = vec![String::new(), "== summary ==".to_owned(), format!("tests: {counts}")];
        lines.extend(self.outcome.iter().map(|line| format!("  {line}")));
        self.tell_own_skips(&log, &mut lines);
        lines.push(format!("  time     {}", minutes(seconds)));
        if passed == 0 {
            self.fail("no test ran".to_owned());
        }
        if self.failures.is_empty() {
            lines.push("  passed".to_owned());
            return lines;
        }
        let failed: BTreeSet<_> = log
            .lines()
            .filter(|line| line.starts_with("test ") && line.ends_with(" FAILED"))
            .collect();
        lines.extend(failed.iter().map(|line| format!("  {line}")));
        lines.extend(reasons(&log).iter().map(|line| format!("  {line}")));
        lines.extend(self.failures.iter().map(|line| format!("  FAILED   {line}")));
        lines
    }

    /// Lists the tests that skipped themselves. In CI each must name the variable for a user's
    /// decision to skip it; otherwise it is a failure, because a missing program must not go
    /// unnoticed. Server output, or the name of the test, may precede it on the line.
    fn tell_own_skips(&mut self, log: &str, lines: &mut Vec<String>) {
        let skips: Vec<_> =
            log.lines().filter_map(|line| Some(line.split_once(SKIPPED)?.1)).collect();
        if skips.is_empty() {
            return;
        }
        lines.push(format!("  SKIPPED  {} tests skipped themselves:", skips.len()));
        let mut counted: BTreeMap<String, usize> = BTreeMap::new();
        for skip in &skips {
            *counted.entry(cut(skip, 200)).or_default() += 1;
        }
        lines.extend(counted.iter().map(|(skip, count)| format!("        {count:7} {skip}")));
        let undecided = skips.iter().filter(|skip| !names_a_variable(skip)).count();
        if undecided > 0 && self.in_ci {
            self.fail(format!("{undecided} tests skipped themselves and name no variable by which somebody decided that"));
        }
    }
}

fn names_a_variable(skip: &str) -> bool {
    skip.split("LOCKTOPUS_")
        .skip(1)
        .any(|rest| rest.starts_with(|letter: char| letter.is_ascii_uppercase() || letter == '_'))
}

fn cut(line: &str, letters: usize) -> String {
    line.chars().take(letters).collect()
}

/// Sums a field of the lines "test result: ok. 12 passed; 0 failed; ...".
fn sum(log: &str, field: &str) -> u64 {
    let results = log.lines().filter(|line| line.starts_with("test result:"));
    let counts = results.filter_map(|line| {
        line.split_once(&format!(" {field}"))?.0.rsplit(' ').next()?.parse::<u64>().ok()
    });
    counts.sum()
}

/// The places and messages of panics, without cargo's lines between: some places keep only the end
/// of a log.
fn reasons(log: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut wanted = 0;
    for line in log.lines() {
        if line.starts_with("thread '") && line.contains("panicked at ") {
            wanted = 4;
        }
        if wanted > 0 {
            wanted -= 1;
            if !line.starts_with("note: ") {
                found.push(cut(line, 600));
            }
        }
    }
    found.truncate(120);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up::with;

    const FINE: &str = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured";

    /// The summary of a log of these lines, and whether it passes.
    fn summary_of(ci: &str, failures: &[&str], log: &[&str]) -> (bool, String) {
        let mut summary = Summary::new(&with(&[("CI", ci)]));
        summary.outcome("ran      this");
        failures.iter().for_each(|what| summary.fail((*what).to_owned()));
        summary.log = log.join("\n").into_bytes();
        // A test may write bytes that are not valid text.
        summary.log.splice(0..0, *b"a\x01\xffb\n");
        let lines = summary.lines(61).join("\n");
        (summary.failures.is_empty(), lines)
    }

    #[test]
    fn counts_are_summed() {
        let (good, said) = summary_of("", &[], &[FINE, FINE]);
        assert!(good, "{said}");
        assert_eq!(
            said,
            "\n== summary ==\ntests: 6 passed, 0 failed, 2 ignored\n  ran      this\n  time     1 min 1 s\n  passed"
        );
        let (good, said) = summary_of("", &[], &["test result: ok. 0 passed; 0 failed; 0 ignored"]);
        assert!(!good && said.contains("FAILED   no test ran"), "{said}");
    }

    #[test]
    fn a_failure_is_told_with_its_reason() {
        let panic = "thread 'a::b' (12) panicked at a/b.rs:3:5:";
        let log =
            [FINE, "test a::b ... FAILED", panic, "left is not right", "note: run with", "x", "y"];
        let (good, said) = summary_of("", &["this-part"], &log);
        assert!(!good);
        let end = format!(
            "  test a::b ... FAILED\n  {panic}\n  left is not right\n  x\n  FAILED   this-part"
        );
        assert!(said.ends_with(&end), "{said}");
    }

    /// In CI no test may skip itself unless a user decided so, however the line begins.
    #[test]
    fn tests_that_skip_themselves_are_told() {
        let skipped = "SKIPPED, NOT PASSED: x";
        let decided = "SKIPPED, NOT PASSED: y, because LOCKTOPUS_SKIP_Y says: so";
        let (good, said) = summary_of("", &[], &[FINE, skipped]);
        assert!(
            good && said.contains("1 tests skipped themselves:\n              1 x\n"),
            "{said}"
        );
        let (good, said) =
            summary_of("true", &[], &[FINE, &format!("test a::b ... {skipped}"), decided]);
        assert!(!good && said.contains("2 tests skipped themselves:"), "{said}");
        assert!(
            said.contains("FAILED   1 tests skipped themselves and name no variable"),
            "{said}"
        );
        let (good, said) =
            summary_of("true", &[], &[FINE, decided, &format!("test a::b ... {decided}")]);
        assert!(good && said.contains("2 y, because LOCKTOPUS_SKIP_Y says: so"), "{said}");
    }
}
