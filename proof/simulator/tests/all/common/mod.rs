//! Schedules written by hand.

use locktopus_core::SafetyMode;
use locktopus_simulator::{
    Act, End, Fault, Flaw, Kind, Lock, Plan, ProcessPlan, Strategy, Wait, run,
};

/// A task that pauses for so many ms, takes a lock however long that takes, and works for so many.
pub(crate) fn act(pause: u64, lock: usize, hold: u64) -> Act {
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

/// A process with these tasks and an exact clock.
pub(crate) fn process(tasks: Vec<Vec<Act>>) -> ProcessPlan {
    ProcessPlan {
        drift: 0,
        neighbour: false,
        keep: 0,
        turns: 64,
        tasks,
    }
}

/// Locks on one server nearby, and its faults.
pub(crate) fn plan(
    locks: &[(&str, Kind)],
    processes: Vec<ProcessPlan>,
    faults: Vec<(u64, Fault)>,
) -> Plan {
    let locks = locks.iter().map(|(name, kind)| Lock {
        name: (*name).to_owned(),
        kind: *kind,
    });
    Plan {
        seed: 1,
        safety: SafetyMode::Plain,
        quorum: None,
        replicas: vec![0],
        travel: 2,
        steady: false,
        lease: 800,
        locks: locks.collect(),
        processes,
        faults,
    }
}

/// One name, used as each of these kinds.
pub(crate) fn one_name(kinds: &[Kind]) -> Vec<(&'static str, Kind)> {
    kinds.iter().map(|kind| ("a", *kind)).collect()
}

/// The rules that a run breaks.
pub(crate) fn rules(plan: &Plan, flaw: Option<Flaw>) -> Vec<&'static str> {
    let found = run(plan, flaw, false).violations;
    found.iter().map(|violation| violation.rule).collect()
}
