//! What looks like a broken rule of the witness and is none, by hand; and beside it, what the rule is there for.

use locktopus_core::SafetyMode;
use locktopus_model::sim::Patch;
use locktopus_sim::{Act, End, Fault, Flaw, Kind, Lock, Plan, ProcessPlan, Strategy, Wait, run};

/// Works under a lock for so many ms.
fn act(pause: u64, lock: usize, hold: u64) -> Act {
    Act {
        pause,
        lock,
        also: None,
        exclusive: true,
        wait: Wait::Forever,
        strategy: Strategy::HandOff,
        at_least: None,
        hold,
        fixed_lease: None,
        end: End::Release,
    }
}

/// Tasks, each in a process of its own, that use one name as these kinds.
fn plan(kinds: &[Kind], tasks: Vec<Vec<Act>>, faults: Vec<(u64, Fault)>) -> Plan {
    let process = |task| ProcessPlan {
        drift: 0,
        neighbour: false,
        keep: 0,
        turns: 64,
        tasks: vec![task],
    };
    let lock = |kind: &Kind| Lock {
        name: "a".to_owned(),
        kind: *kind,
    };
    Plan {
        seed: 1,
        safety: SafetyMode::Plain,
        quorum: None,
        replicas: vec![0],
        travel: 2,
        steady: false,
        lease: 800,
        locks: kinds.iter().map(lock).collect(),
        processes: tasks.into_iter().map(process).collect(),
        faults,
    }
}

fn rules(plan: &Plan, flaw: Option<Flaw>) -> Vec<&'static str> {
    let found = run(plan, flaw, false).violations;
    found.iter().map(|violation| violation.rule).collect()
}

/// As the mutant "a waiter that leaves a free lock tells nobody".
const TELLS_NOBODY: Flaw = Flaw::Script(Patch {
    script: "_release",
    from: "free = fine and code == 0",
    to: "free = false",
    more: &[],
});

/// One gives up its place in line when the holder's lease is over; but the server lacks replicas, and refuses that as it refuses
/// everything: the place is still there, nobody has looked at the lock, and the next in line is granted it later.
#[test]
fn a_place_that_cannot_be_given_up_hands_nothing_on() {
    for kind in [Kind::Lock, Kind::Fair, Kind::Mutex] {
        let mut holds = act(0, 0, 1_000);
        holds.fixed_lease = Some(400);
        let mut leaves = act(100, 0, 10);
        leaves.wait = Wait::AtMost(350);
        let lacking = vec![(300, Fault::LacksReplicas(0, 500))];
        let mut plan = plan(&[kind], vec![vec![holds], vec![leaves]], lacking);
        assert_eq!(rules(&plan, None), Vec::<&str>::new(), "{kind:?}");
        // Whoever leaves at last hands on what it finds free to the one behind.
        plan.processes.push(plan.processes[1].clone());
        plan.processes[2].tasks[0] = vec![act(150, 0, 10)];
        assert_eq!(rules(&plan, None), Vec::<&str>::new(), "{kind:?}");
        let found = rules(&plan, Some(TELLS_NOBODY));
        assert!(
            found.contains(&"what is free is handed on"),
            "{kind:?}: {found:?}"
        );
    }
}

/// One counts a latch down and does not hear of it; another one takes its name as a lock; then the first one asks again.
fn latch_and_lock(broken_at: u64) -> Plan {
    let mut tries = act(4, 1, 300);
    tries.wait = Wait::Try;
    plan(
        &[Kind::Latch, Kind::Lock],
        vec![vec![act(0, 0, 200)], vec![tries; 80]],
        vec![(broken_at, Fault::Break(0))],
    )
}

#[test]
fn what_was_done_is_told_again_whatever_the_name_is_now() {
    let forgets = Flaw::Script(Patch {
        script: "latch",
        from: "local done = redis.call('GET', KEYS[5])",
        to: "local done = false",
        more: &[],
    });
    let mut noticed = 0;
    for at in 200..260 {
        let plan = latch_and_lock(at);
        assert_eq!(rules(&plan, None), Vec::<&str>::new(), "broken at {at} ms");
        // "Nothing was done" is not true of what was.
        let found = rules(&plan, Some(forgets));
        noticed += usize::from(found.contains(&"kinds are kept apart"));
    }
    assert!(noticed > 0, "nobody asked again while the lock was held");
}
