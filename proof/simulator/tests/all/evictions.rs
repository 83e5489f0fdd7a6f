//! An eviction excuses the holders it takes the lock from, who do not know it yet. It excuses no
//! other holder: neither a waiter that it lets in, nor one that comes after the operator gave up.

use crate::common::{act, one_name, process, rules};
use locktopus_simulator::{Act, End, Fault, Flaw, Kind, Lock, Patch, Plan, run};

/// Two hold it at once.
const BESIDE: &str = "one holder at a time";

/// The eviction hands the lock to the first waiter, forgets that, and hands it to the second.
const TWO: Patch = Patch {
    script: "_evict",
    from: "    handed = select(2, hand_off(nil))\n",
    to: "    hand_off(nil)\n    clear()\n    handed = select(2, hand_off(nil))\n",
    more: &[],
};

fn evicts(pause: u64) -> Act {
    Act {
        end: End::Evict,
        ..act(pause, 0, 0)
    }
}

/// One process holds a lock, two wait for it, and an operator evicts the holder.
fn two_wait(kind: Kind) -> Plan {
    let processes = [
        act(0, 0, 2_000),
        act(60, 0, 300),
        act(90, 0, 300),
        evicts(200),
    ];
    let processes = processes.map(|act| process(vec![vec![act]]));
    crate::common::plan(&one_name(&[kind]), processes.into(), Vec::new())
}

#[test]
fn nobody_is_excused_whom_an_eviction_lets_in() {
    for kind in [Kind::Lock, Kind::Fair, Kind::Mutex] {
        let plan = two_wait(kind);
        assert_eq!(rules(&plan, None), Vec::<&str>::new(), "{kind:?}");
        let found = rules(&plan, Some(Flaw::Script(TWO)));
        assert!(found.contains(&BESIDE), "{kind:?}: {found:?}");
    }
}

/// The operator's network stalls, so the eviction ends in a `Maybe` error. Long after that, two
/// processes hold the lock in turn, on a server that loses its data now and then.
fn after_an_error(seed: u64) -> Plan {
    let holds =
        |first: u64| (0..8).map(move |place| act(if place == 0 { first } else { 5 }, 0, 150));
    let processes = vec![
        process(vec![holds(5_000).collect()]),
        process(vec![holds(5_040).collect()]),
        // The first eviction makes the server know the script.
        process(vec![vec![evicts(100), evicts(900)]]),
    ];
    let mut plan = crate::common::plan(&one_name(&[Kind::Lock]), processes, Vec::new());
    plan.faults = vec![(900, Fault::Stall(2, 2_000))];
    plan.seed = seed;
    plan
}

#[test]
fn nobody_is_excused_for_ever_by_an_eviction_that_ended_in_an_error() {
    // Once where it did nothing, and once where it reached the server after it was given up.
    let mut beside = [0; 2];
    for seed in 0..40 {
        let plan = after_an_error(seed);
        let shipped = run(&plan, None, false);
        assert_eq!(shipped.violations, Vec::new(), "seed {seed}");
        assert_eq!(shipped.counts.get("evict"), None, "it was answered");
        let ran = shipped.counts.get("lock_evict") > Some(&1);
        let found = rules(&plan, Some(Flaw::Forgets));
        beside[usize::from(ran)] += u32::from(found.contains(&BESIDE));
    }
    println!("beside each other in {beside:?} schedules");
    assert!(!beside.contains(&0), "two were not seen to hold it at once");
}

/// Nor does it excuse a group of locks that waits for this one.
#[test]
fn no_group_is_excused_that_an_eviction_lets_in() {
    let mut plan = two_wait(Kind::Lock);
    plan.locks.push(Lock {
        name: "b".to_owned(),
        kind: Kind::Lock,
    });
    plan.locks.push(Lock {
        name: "c".to_owned(),
        kind: Kind::Lock,
    });
    for (process, also) in [(1, 1), (2, 2)] {
        plan.processes[process].tasks[0][0].also = Some(also);
    }
    assert_eq!(rules(&plan, None), Vec::<&str>::new());
    let found = rules(&plan, Some(Flaw::Script(TWO)));
    assert!(found.contains(&BESIDE), "{found:?}");
}
