//! Many tasks of a process ask at once, so the client sends their requests together.

use locktopus_simulator::{Flaw, Plan, report, run};

const SCHEDULES: u64 = 100;

#[test]
fn crowds() {
    let mut batches = 0;
    for seed in 0..SCHEDULES {
        let plan = Plan::crowded(seed);
        let outcome = run(&plan, None, false);
        assert!(outcome.violations.is_empty(), "{}", report(&plan, None));
        batches += outcome.counts.get("batch").copied().unwrap_or(0);
    }
    assert!(batches > SCHEDULES * 5, "only {batches} batches");
    println!("{SCHEDULES} schedules, {batches} batches");
}

/// Some schedule with this flaw breaks `rule`.
fn noticed(flaw: Flaw, rule: &str) {
    let broken = |seed: &u64| {
        let found = run(&Plan::crowded(*seed), Some(flaw), false).violations;
        found.iter().any(|violation| violation.rule == rule)
    };
    let seed = (0..SCHEDULES).find(broken);
    let seed = seed.unwrap_or_else(|| panic!("{flaw:?} breaks no {rule:?}"));
    println!("{flaw:?}: seed {seed}, {rule}");
}

#[test]
fn a_batch_whose_answers_are_mixed_up_is_noticed() {
    noticed(Flaw::AnswersAreMixedUp, "one holder at a time");
}

#[test]
fn a_member_that_ran_and_is_told_otherwise_is_noticed() {
    noticed(Flaw::SaysItDidNotRun, "what is free is taken");
}
