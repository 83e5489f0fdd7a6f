//! Correct schedules that look wrong: the judge or the witness once reported each as a fault.

use std::time::Duration;

use crate::common::{one_name, process};
use locktopus_core::{ReplicaNeed, SafetyMode};
use locktopus_simulator::{Act, End, Fault, Flaw, Kind, Outcome, Plan, ProcessPlan, Wait, run};

fn act(pause: u64, hold: u64) -> Act {
    crate::common::act(pause, 0, hold)
}

fn plan(kinds: &[Kind], processes: Vec<ProcessPlan>) -> Plan {
    Plan {
        lease: 400,
        ..crate::common::plan(&one_name(kinds), processes, Vec::new())
    }
}

/// Runs it, and expects no violation.
fn well(plan: &Plan) -> Outcome {
    let outcome = run(plan, None, false);
    assert_eq!(outcome.violations, Vec::new(), "{plan:#?}");
    outcome
}

fn count(outcome: &Outcome, what: &str) -> u64 {
    outcome.counts.get(what).copied().unwrap_or(0)
}

/// Extensions of a name used as several kinds count, and a hold without them is still reported.
#[test]
fn a_lease_of_a_mixed_name_is_extended() {
    for kinds in [
        [Kind::Lock, Kind::Fair],
        [Kind::Fair, Kind::Mutex],
        [Kind::Mutex, Kind::Lock],
        [Kind::ReadWrite, Kind::Fair],
    ] {
        let mut plan = plan(
            &kinds,
            vec![
                process(vec![vec![act(0, 3_000)]]),
                process(vec![vec![act(100, 3_000)]]),
            ],
        );
        plan.faults = vec![(1_500, Fault::Die(0))];
        well(&plan);
        plan.faults = vec![(300, Fault::Sleep(0, 2_000))];
        well(&plan);
        let found = run(&plan, Some(Flaw::SleepsUnnoticed), false).violations;
        let rule = "holds are believed in for a lease";
        assert!(found.iter().any(|it| it.rule == rule), "{found:?}");
    }
}

/// The downgrade is answered so late that reading is over as well.
#[test]
fn a_downgrade_may_be_answered_after_its_lease() {
    let mut lost = 0;
    for stalled in 10..60 {
        let mut plan = plan(&[Kind::ReadWrite], vec![process(vec![vec![act(0, 10)]])]);
        plan.processes[0].tasks[0][0].end = End::Downgrade;
        plan.faults = vec![(stalled, Fault::Stall(0, 450))];
        lost += count(&well(&plan), "told that it is lost");
    }
    assert!(lost > 0, "it was never late");
}

/// A cached lease is taken away, and the next task of its process gets it before the process is
/// told.
#[test]
fn a_lease_may_be_taken_away_before_its_next_task_asks() {
    let mut had = 0;
    for asks in 105..135 {
        let mut plan = plan(
            &[Kind::Lock],
            vec![
                process(vec![vec![act(0, 20)], vec![act(asks, 100)]]),
                process(vec![vec![act(100, 0)]]),
            ],
        );
        plan.lease = 3_000;
        plan.processes[0].keep = 900;
        plan.processes[1].tasks[0][0].end = End::Evict;
        for seed in 0..4 {
            plan.seed = seed;
            let outcome = well(&plan);
            let stayed = count(&outcome, "lock_acquire") == 1;
            had += u64::from(stayed && count(&outcome, "evict") == 1);
        }
    }
    assert!(had > 0, "it never stayed");
}

/// A quarter of its lease is too short for a reply, so it never gets the lock.
#[test]
fn a_lease_may_be_too_short_for_a_quorum() {
    let short = Act {
        fixed_lease: Some(40),
        ..act(6_000, 10)
    };
    let mut plan = plan(&[Kind::Mutex], vec![process(vec![vec![short]])]);
    plan.quorum = Some(3);
    plan.travel = 10;
    assert_eq!(count(&well(&plan), "failed acts"), 1);
}

/// A task with a longer lease that waits behind it in its process then gets the lock.
#[test]
fn a_lease_that_is_too_short_fails_nobody_else() {
    let short = Act {
        fixed_lease: Some(40),
        ..act(6_000, 10)
    };
    let tasks = vec![vec![short], vec![act(6_002, 10)]];
    let mut plan = plan(&[Kind::Mutex], vec![process(tasks)]);
    plan.quorum = Some(3);
    plan.travel = 10;
    let outcome = well(&plan);
    assert_eq!(count(&outcome, "failed acts"), 1);
    assert_eq!(count(&outcome, "held: mutex"), 1);
}

/// Calls that time out before their replies disturb no other call.
#[test]
fn a_short_call_breaks_no_connection() {
    let short = Act {
        fixed_lease: Some(40),
        ..act(6_000, 10)
    };
    let inspect = Act {
        lock: 1,
        end: End::Inspect,
        ..act(20, 0)
    };
    let tasks = vec![
        vec![short],
        [vec![act(6_000, 1)], vec![inspect; 100]].concat(),
    ];
    let mut plan = plan(&[Kind::Mutex, Kind::Mutex], vec![process(tasks)]);
    plan.locks[1].name = "b".to_owned();
    plan.processes[0].tasks[1][0].lock = 1;
    plan.quorum = Some(3);
    plan.travel = 10;
    assert_eq!(count(&well(&plan), "failed acts"), 1);
}

/// Replicas may confirm too late for a request that asks only once.
#[test]
fn a_replica_may_be_late() {
    let tries = Act {
        wait: Wait::Try,
        ..act(1, 1)
    };
    let mut plan = plan(
        &[Kind::Lock],
        vec![process(vec![
            [vec![act(6_000, 1)], vec![tries; 150]].concat(),
        ])],
    );
    plan.replicas = vec![1];
    plan.travel = 10;
    plan.safety = SafetyMode::Replicated {
        need: ReplicaNeed::Majority,
        timeout: Duration::from_millis(150),
    };
    let failed: u64 = (0..20)
        .map(|seed| {
            plan.seed = seed;
            count(&well(&plan), "failed acts")
        })
        .sum();
    assert!(failed > 0, "none was late");
}

/// Leases expire by the clock of the current primary. If its clock was set back, its successor may
/// find a lease expired that it kept.
#[test]
fn a_clock_set_back_counts_once_its_server_is_replaced() {
    let mut plan = plan(&[Kind::Lock], Vec::new());
    plan.replicas = vec![2];
    let back = |node| Fault::SetClock(node, -270);
    let promoted = Fault::Orderly(0);
    for (faults, promises) in [
        (vec![back(0)], true),
        (vec![back(0), promoted], false),
        (vec![promoted, back(0)], true),
        (vec![back(1), promoted], true),
        (vec![promoted, back(1), promoted], false),
    ] {
        plan.faults = (10..).zip(faults).collect();
        plan.safety = SafetyMode::Plain;
        assert_eq!(plan.promises_exclusion(), promises, "{:?}", plan.faults);
        plan.safety = SafetyMode::Quarantine {
            max_lease: Duration::from_millis(400),
        };
        assert!(plan.promises_exclusion(), "{:?}", plan.faults);
    }
}

/// Exclusion is promised up to the first fault that ends it; the order of the list does not matter.
#[test]
fn exclusion_ends_with_the_first_fault_that_nothing_guards_against() {
    let mut plan = plan(&[Kind::Lock], Vec::new());
    plan.replicas = vec![2];
    let (dies, split) = (Fault::Kill(0), Fault::Split(0, 300));
    plan.faults = vec![
        (900, split),
        (300, dies),
        (600, dies),
        (10, Fault::Break(0)),
    ];
    let modes = [
        (SafetyMode::Plain, (300, dies)),
        (
            SafetyMode::Replicated {
                need: ReplicaNeed::Majority,
                timeout: Duration::from_millis(150),
            },
            (600, dies),
        ),
        (
            SafetyMode::Quarantine {
                max_lease: Duration::from_millis(400),
            },
            (900, split),
        ),
    ];
    for (safety, ends) in modes {
        plan.safety = safety;
        assert_eq!(plan.exclusion_ends(), Some(ends), "{safety:?}");
        assert!(!plan.promises_exclusion());
    }
    plan.quorum = Some(3);
    assert_eq!(plan.exclusion_ends(), None);
}

/// A key that moves keeps its remaining time, even if the clocks differ.
#[test]
fn a_lease_moves_between_servers_whose_clocks_differ() {
    let mut plan = plan(
        &[Kind::Lock],
        vec![
            process(vec![vec![act(0, 900)]]),
            process(vec![vec![act(300, 10)]]),
        ],
    );
    plan.replicas = vec![0; 3];
    let mut moved = 0;
    for (node, by) in [(0, -400), (1, -400), (2, -400)] {
        let moves = |at| (at, Fault::MoveSlot(0, 60));
        plan.faults = vec![(20, Fault::SetClock(node, by)), moves(100), moves(400)];
        assert!(plan.promises_exclusion());
        moved += count(&well(&plan), "slot moved");
    }
    assert_eq!(moved, 6);
}

/// If the server that gave away keys loses those writes, the keys come back with their old last
/// token.
#[test]
fn tokens_grow_unless_a_slot_moves_while_writes_are_lost() {
    let mut plan = plan(&[Kind::Lock], Vec::new());
    plan.replicas = vec![1; 3];
    plan.safety = SafetyMode::Quarantine {
        max_lease: Duration::from_millis(800),
    };
    let (moves, dies) = (Fault::MoveSlot(0, 60), Fault::Kill(0));
    for (faults, promises) in [
        (vec![moves], true),
        (vec![dies], true),
        (vec![moves, dies], false),
    ] {
        plan.faults = (10..).zip(faults).collect();
        assert_eq!(plan.promises_order(), promises, "{:?}", plan.faults);
        assert!(plan.promises_exclusion());
    }
}
