//! A grant that too few replicas confirm is undone. However late that release arrives, it ends no
//! later grant.

use std::time::Duration;

use crate::common::{act, one_name, process};
use locktopus_core::{ReplicaNeed, SafetyMode};
use locktopus_simulator::{Act, Fault, Kind, Plan, ProcessPlan, Strategy, run};

/// Takes the lock after each of these pauses, for 40 ms.
fn task(pauses: [u64; 3]) -> Vec<Act> {
    let act = |pause| Act {
        strategy: Strategy::Notify,
        ..act(pause, 0, 40)
    };
    pauses.map(act).into()
}

/// Two processes whose tasks each ask the server on their own. While nothing is confirmed, their
/// requests queue on the connection of the process, until it gives up and opens another one.
fn plan(seed: u64, kind: Kind, tasks: u64, faults: Vec<(u64, Fault)>) -> Plan {
    let tasks = (0..tasks).map(|number| task([300 + number * 7, 20, 90]));
    let process = ProcessPlan {
        turns: 1,
        ..process(tasks.collect())
    };
    Plan {
        seed,
        safety: SafetyMode::Replicated {
            need: ReplicaNeed::All,
            timeout: Duration::from_millis(150),
        },
        replicas: vec![1],
        ..crate::common::plan(&one_name(&[kind]), vec![process.clone(), process], faults)
    }
}

/// Twice the replica confirms nothing for a while. There is no other fault.
const LAGS: [(u64, Fault); 2] = [(200, Fault::Lag(1, 500)), (1_000, Fault::Lag(1, 500))];
/// The replica is promoted, and has no replica of its own for a while.
const KILL: [(u64, Fault); 1] = [(200, Fault::Kill(0))];

fn is_exclusive(seed: u64, kind: Kind, tasks: u64, faults: &[(u64, Fault)]) {
    let found = run(&plan(seed, kind, tasks, faults.to_vec()), None, false).violations;
    assert_eq!(found, Vec::new(), "seed {seed}");
}

/// In each of these seeds, a retry under the owner of the undone grant once let the late release
/// make two holders.
#[test]
fn a_late_release_ends_no_later_grant() {
    is_exclusive(40, Kind::SingleKey, 3, &LAGS);
    is_exclusive(36, Kind::SingleKey, 5, &KILL);
    is_exclusive(6, Kind::Fair, 2, &KILL);
}
