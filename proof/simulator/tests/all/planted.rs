//! Planted faults: each shows in fewer schedules than a test run has.

use std::time::Duration;

use crate::common::{act, one_name, rules};
use locktopus_core::SafetyMode;
use locktopus_simulator::{Fault, Flaw, Kind, Plan, ProcessPlan, report, run, wrong_scripts};

/// Fewer than `simulation` runs.
const SCHEDULES: u64 = 300;

/// `first` is the seed that showed it last, and is tried first.
fn noticed(flaw: Flaw, rule: &str, first: u64) {
    let broken = |plan: &Plan| {
        let found = run(plan, Some(flaw), false).violations;
        found.iter().any(|violation| violation.rule == rule)
    };
    let mut seeds = std::iter::once(first).chain(0..SCHEDULES);
    let seed = seeds.find(|seed| broken(&Plan::draw(*seed)));
    let seed = seed.unwrap_or_else(|| panic!("{flaw:?} breaks no {rule:?}"));
    println!("{flaw:?}: seed {seed}, {rule}");
}

#[test]
fn a_release_of_what_others_hold_is_noticed() {
    noticed(Flaw::ReleasesOthers, "one holder at a time", 34);
}

#[test]
fn a_server_that_forgets_is_noticed() {
    noticed(Flaw::Forgets, "one holder at a time", 0);
}

#[test]
fn renewals_that_are_not_are_noticed() {
    noticed(Flaw::RenewsTheLost, "a loss is heard of", 111);
}

#[test]
fn tokens_that_do_not_grow_are_noticed() {
    noticed(Flaw::TokensStand, "tokens grow", 33);
}

#[test]
fn locks_that_are_not_freed_are_noticed() {
    noticed(Flaw::NeverFrees, "nobody waits for ever", 40);
}

#[test]
fn what_nobody_removes_is_noticed() {
    noticed(Flaw::NeverEnds, "nothing is left", 283);
}

#[test]
fn permits_that_are_not_there_are_noticed() {
    noticed(Flaw::GivesTooMany, "one holder at a time", 28);
}

#[test]
fn a_mode_that_is_not_kept_is_noticed() {
    noticed(Flaw::IgnoresSafety, "one holder at a time", 15);
}

#[test]
fn a_primary_that_is_promoted_again_and_taken_for_one_that_stayed_is_noticed() {
    noticed(Flaw::EpochsUntold, "one holder at a time", 0);
}

#[test]
fn servers_that_vote_without_their_data_are_noticed() {
    noticed(Flaw::VotesAtOnce, "one holder at a time", 55);
}

/// A process with one task, which takes the lock and works under it.
fn process(pause: u64, hold: u64) -> ProcessPlan {
    crate::common::process(vec![vec![act(pause, 0, hold)]])
}

/// Processes that take one lock on one server, and faults.
fn plan(processes: Vec<ProcessPlan>, faults: Vec<(u64, Fault)>) -> Plan {
    crate::common::plan(&one_name(&[Kind::Lock]), processes, faults)
}

/// A process holds a lock when its machine falls asleep, and wakes up long after the next grant.
#[test]
fn a_sleep_that_nobody_notices_is_noticed() {
    let plan = plan(
        vec![process(0, 3_000), process(100, 3_000)],
        vec![(300, Fault::Sleep(0, 2_000))],
    );
    assert_eq!(rules(&plan, None), Vec::<&str>::new());
    let found = rules(&plan, Some(Flaw::SleepsUnnoticed));
    assert!(found.contains(&"one holder at a time"), "{found:?}");
    assert!(
        found.contains(&"holds are believed in for a lease"),
        "{found:?}"
    );
}

/// Exclusion is still required before the fault that ends its promise.
#[test]
fn exclusion_is_required_until_the_fault_that_ends_it() {
    let sleeps = |set: u64| {
        let plan = plan(
            vec![process(0, 3_000), process(100, 3_000)],
            vec![
                (300, Fault::Sleep(0, 2_000)),
                (set, Fault::SetClock(0, 300)),
            ],
        );
        let found = rules(&plan, Some(Flaw::SleepsUnnoticed));
        (
            plan.exclusion_ends(),
            found.contains(&"one holder at a time"),
        )
    };
    let ends = |at| Some((at, Fault::SetClock(0, 300)));
    assert_eq!(sleeps(200), (ends(200), false));
    assert_eq!(sleeps(6_000), (ends(6_000), true));
}

/// Each shard of a cluster loses its primary while a process holds a lock there that the replica
/// has not received.
#[test]
fn a_mode_that_is_not_kept_by_one_of_the_shards_is_noticed() {
    // At the start: a primary and its replica, two further primaries, and a replica of each.
    for (shard, replica) in [(0, 1), (1, 4), (2, 5)] {
        let noticed = |seed| {
            let mut plan = plan(
                vec![process(1_000, 3_000), process(1_300, 500)],
                vec![(900, Fault::Lag(replica, 700)), (1_200, Fault::Kill(shard))],
            );
            plan.seed = seed;
            plan.replicas = vec![1; 3];
            plan.safety = SafetyMode::Quarantine {
                max_lease: Duration::from_millis(plan.lease),
            };
            assert_eq!(rules(&plan, None), Vec::<&str>::new(), "seed {seed}");
            rules(&plan, Some(Flaw::IgnoresSafety)).contains(&"one holder at a time")
        };
        // About a third of the seeds put the lock on this shard.
        let noticed = (0..42).filter(|seed| noticed(*seed)).count();
        assert!(noticed > 0, "shard {shard} may forget its locks");
        assert!(noticed <= 18, "shard {shard} keeps all locks: {noticed}");
    }
}

/// A Redisson process that waits while one of ours holds the lock.
fn waits_beside() -> Plan {
    let mut redisson = process(50, 100);
    redisson.neighbour = true;
    let mut plan = plan(vec![process(0, 300), redisson], Vec::new());
    // The lease does not expire during the schedule.
    plan.lease = 6_000;
    plan.steady = true;
    plan
}

#[test]
fn waiters_of_redisson_that_are_not_woken_are_noticed() {
    let plan = waits_beside();
    let shipped = run(&plan, None, false);
    assert_eq!(shipped.violations, Vec::new());
    assert_eq!(shipped.counts.get("woken: Redisson"), Some(&1));
    let wrong = wrong_scripts()
        .into_iter()
        .find(|wrong| wrong.name == "nobody hears of a release");
    let found = rules(&plan, wrong.map(|wrong| Flaw::Script(wrong.patch)));
    assert_eq!(found, ["what is free is taken"]);
}

/// In a cluster Redisson publishes and subscribes by slot, and follows redirects.
#[test]
fn neighbours_are_in_clusters_too() {
    let mut plan = waits_beside();
    plan.replicas = vec![0; 3];
    for seed in 0..7 {
        plan.seed = seed;
        let shipped = run(&plan, None, false);
        assert_eq!(shipped.violations, Vec::new());
        assert_eq!(shipped.counts.get("woken: Redisson"), Some(&1));
        let found = rules(&plan, Some(Flaw::ShardsAreSilent));
        assert_eq!(found, ["what is free is taken"]);
    }
    // The slot moves between the hold and the wait.
    plan.steady = false;
    plan.processes[1].tasks[0][0].pause = 150;
    plan.faults = vec![(50, Fault::MoveSlot(0, 20))];
    let moved = run(&plan, None, false);
    assert_eq!(moved.violations, Vec::new());
    assert!(moved.counts.contains_key("MOVED"), "{:?}", moved.counts);
    let found = rules(&plan, Some(Flaw::LeavesKeysBehind));
    assert!(found.contains(&"one holder at a time"), "{found:?}");
}

#[test]
fn keys_that_do_not_move_with_their_slot_are_noticed() {
    noticed(Flaw::LeavesKeysBehind, "one holder at a time", 452);
}

#[test]
fn shards_that_say_nothing_are_noticed() {
    noticed(Flaw::ShardsAreSilent, "what is free is taken", 33);
}

#[test]
fn a_failure_is_cut_down_and_shown() {
    let flaw = Flaw::GivesTooMany;
    let broken = |seed: &u64| {
        !run(&Plan::draw(*seed), Some(flaw), false)
            .violations
            .is_empty()
    };
    let seed = std::iter::once(28)
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
