//! Faults that are planted: each is noticed by fewer schedules than every test run has.

use locktopus_sim::{Flaw, Plan, report, run};

/// As many as `simulation` runs.
const SCHEDULES: u64 = 300;

/// `first`: where it was seen last, which is tried before the others.
fn noticed(flaw: Flaw, rule: &str, first: u64) {
    let broken = |plan: &Plan| {
        let found = run(plan, Some(flaw), false).violations;
        found.iter().any(|violation| violation.rule == rule)
    };
    let mut seeds = std::iter::once(first).chain(0..SCHEDULES);
    let seed = seeds.find(|seed| broken(&Plan::draw(*seed)));
    let seed = seed.unwrap_or_else(|| panic!("{flaw:?} breaks no {rule:?}"));
    println!("{flaw:?}: seed {seed}");
}

#[test]
fn a_release_of_what_others_hold_is_noticed() {
    noticed(Flaw::ReleasesOthers, "one holder at a time", 8);
}

#[test]
fn a_server_that_forgets_is_noticed() {
    noticed(Flaw::Forgets, "one holder at a time", 10);
}

#[test]
fn renewals_that_are_not_are_noticed() {
    noticed(Flaw::RenewsTheLost, "a loss is heard of", 234);
}

#[test]
fn tokens_that_do_not_grow_are_noticed() {
    noticed(Flaw::TokensStand, "tokens grow", 34);
}

#[test]
fn locks_that_are_not_freed_are_noticed() {
    noticed(Flaw::NeverFrees, "nobody waits for ever", 4);
}

#[test]
fn what_nobody_removes_is_noticed() {
    noticed(Flaw::NeverEnds, "nothing is left", 109);
}

#[test]
fn permits_that_are_not_there_are_noticed() {
    noticed(Flaw::GivesTooMany, "one holder at a time", 43);
}

#[test]
fn a_mode_that_is_not_kept_is_noticed() {
    noticed(Flaw::IgnoresSafety, "one holder at a time", 94);
}

#[test]
fn servers_that_vote_without_their_data_are_noticed() {
    noticed(Flaw::VotesAtOnce, "one holder at a time", 3);
}

#[test]
fn a_sleep_that_nobody_notices_is_noticed() {
    noticed(Flaw::SleepsUnnoticed, "one holder at a time", 76);
}

#[test]
fn a_failure_is_cut_down_and_shown() {
    let flaw = Flaw::GivesTooMany;
    let broken = |seed: &u64| {
        !run(&Plan::draw(*seed), Some(flaw), false)
            .violations
            .is_empty()
    };
    let seed = std::iter::once(43)
        .chain(0..SCHEDULES)
        .find(broken)
        .expect("it is noticed");
    let text = report(&Plan::draw(seed), Some(flaw));
    assert!(
        text.contains(&format!("LOCKTOPUS_SIM_SEED={seed} ")),
        "{text}"
    );
    let acts = |plan: &Plan| {
        plan.processes
            .iter()
            .flat_map(|process| &process.tasks)
            .map(Vec::len)
            .sum::<usize>()
    };
    let shown = text.lines().filter(|line| line.contains("Act {")).count();
    assert!(shown < acts(&Plan::draw(seed)), "nothing was cut:\n{text}");
    assert!(text.contains("_acquire "), "no trace:\n{text}");
}
