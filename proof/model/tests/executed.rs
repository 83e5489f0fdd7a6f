//! `Executed::No` is a promise that nothing was written. It holds for a failure of any command in
//! any script, and for a pipeline that breaks anywhere.
#![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

#[path = "executed_common/mod.rs"]
mod common;

use std::time::Duration;

use common::{Bench, Op, State, is_about, is_whole, kinds, picture};
use locktopus_core::{BackendError, CounterAction, Executed, LockKind, ReplicaNeed, SafetyMode};
use locktopus_model::Pass;

/// Errors that a command in the middle of a script can get.
const FAULTS: [&str; 4] = [
    "ERR something else",
    "WRONGTYPE Operation against a key holding the wrong kind of value",
    "NOPERM this user has no permissions to run this command",
    "BADTOKEN the token key does not hold a number",
];

const QUARANTINE: SafetyMode = SafetyMode::Quarantine {
    max_lease: Duration::from_secs(600),
};

fn judge(bench: &Bench, before: &str, error: &BackendError, what: &dyn Fn() -> String) {
    if error.executed() == Executed::No {
        let after = picture(&bench.client.server());
        assert_eq!(before, after, "{}: {error}", what());
    }
}

/// Each command of each script fails in turn.
#[tokio::test(start_paused = true)]
async fn no_command_fails_unnoticed() {
    let mut faults = 0;
    for safety in [SafetyMode::Plain, QUARANTINE] {
        for kind in kinds() {
            for state in State::ALL {
                let ops = ops(&kind, safety, state);
                if ops.is_empty() {
                    continue;
                }
                let bench = Bench::new(kind.clone(), safety, state).await;
                for op in ops {
                    faults += fail_each(&bench, &kind, state, op).await;
                }
            }
        }
    }
    assert!(faults > 10_000 || !is_whole(), "only {faults} faults");
}

/// The operations possible in this state; with a mutant, only those that run a changed script.
fn ops(kind: &LockKind, safety: SafetyMode, state: State) -> Vec<Op> {
    let ops = Op::ALL.into_iter().filter(|op| op.is_for(kind));
    ops.filter(|op| is_about(kind, safety, state, *op))
        .collect()
}

async fn fail_each(bench: &Bench, kind: &LockKind, state: State, op: Op) -> usize {
    let mut faults = 0;
    for at in 1.. {
        for line in FAULTS {
            bench.reset();
            let before = picture(&bench.client.server());
            bench.client.server().script_fault = Some((at, line.to_owned()));
            let answer = bench.ask(op).await;
            if bench.client.server().script_fault.take().is_some() {
                return faults;
            }
            faults += 1;
            if let Err(error) = answer {
                let what = || format!("{kind:?} {state:?} {op:?}, {line:?} at command {at}");
                judge(bench, &before, &error, &what);
            }
        }
    }
    faults
}

/// Each key holds a value of another type, or an invalid number.
#[tokio::test(start_paused = true)]
async fn no_foreign_value_stops_a_script_half_way() {
    let values: [&[&str]; 7] = [
        &["SET", "", "x"],
        &["SET", "", "9007199254740991"],
        &["SET", "", "-1e300"],
        &["HSET", "", "a", "b"],
        &["RPUSH", "", "x"],
        &["SADD", "", "x"],
        &["ZADD", "", "1", "x"],
    ];
    for safety in [SafetyMode::Plain, QUARANTINE] {
        for kind in kinds() {
            for state in State::ALL {
                let ops = ops(&kind, safety, state);
                if ops.is_empty() {
                    continue;
                }
                let bench = Bench::new(kind.clone(), safety, state).await;
                for (key, value) in bench
                    .keys()
                    .iter()
                    .flat_map(|key| values.map(|it| (key, it)))
                {
                    for op in ops.iter().copied() {
                        bench.reset();
                        put(&bench, key, value);
                        let before = picture(&bench.client.server());
                        if let Err(error) = bench.ask(op).await {
                            let key = String::from_utf8_lossy(key).into_owned();
                            let what = || format!("{kind:?} {state:?} {op:?}, {key} {value:?}");
                            judge(&bench, &before, &error, &what);
                        }
                    }
                }
            }
        }
    }
}

fn put(bench: &Bench, key: &[u8], value: &[&str]) {
    let mut words: Vec<Vec<u8>> = value.iter().map(|word| word.as_bytes().to_vec()).collect();
    words[1] = key.to_vec();
    let mut server = bench.client.server();
    server.command(&[b"DEL".to_vec(), key.to_vec()]).unwrap();
    server.command(&words).unwrap();
}

/// A script with a mark, then `WAIT` and `ROLE`. It runs twice, because there are more replicas
/// than it waits for. Each element of each pass fails, and the connection breaks at each place.
#[tokio::test(start_paused = true)]
async fn no_pipeline_breaks_unnoticed() {
    let safety = SafetyMode::Replicated {
        need: ReplicaNeed::All,
        timeout: Duration::from_millis(500),
    };
    let lines = [
        "READONLY x",
        "MOVED 1 h:1",
        "OOM x",
        "NOAUTH x",
        "ERR x",
        "NOREPLICAS x",
    ];
    let refused = (0..4).flat_map(|at| lines.map(|line| Pass::Refused(at, line.to_owned())));
    let cut = (0..=4).map(Pass::Cut);
    let faults: Vec<Pass> = refused.chain(cut).chain([Pass::NotSent]).collect();
    let mut lost = 0;
    for kind in kinds() {
        for state in State::ALL {
            let ops = ops(&kind, safety, state);
            if ops.is_empty() {
                continue;
            }
            let mut bench = Bench::new(kind.clone(), safety, state).await;
            for op in ops {
                // In the first two passes the server does not know the script yet.
                for (fine, fault) in (0..4).flat_map(|fine| faults.iter().map(move |it| (fine, it)))
                {
                    bench.reset_all().await;
                    let before = but_tokens(&bench);
                    let owner = bench.owner_in_short();
                    let passes = std::iter::repeat_n(Pass::Fine, fine);
                    bench
                        .client
                        .plan(passes.chain(std::iter::repeat_n(fault.clone(), 100)));
                    let Err(error) = bench.ask(op).await else {
                        continue;
                    };
                    let after = but_tokens(&bench);
                    lost += usize::from(after != before);
                    // An unconfirmed grant is given back, and another owner may get it. A note of
                    // where to reach its owner may stay, which has no effect.
                    let noted = format!("!recall: {owner}");
                    let given_back = error.message().contains("given back")
                        && !after.replace(&noted, "").contains(&owner);
                    assert!(
                        error.executed() == Executed::Maybe || before == after || given_back,
                        "{kind:?} {state:?} {op:?}, {fine} passes, then {fault:?}: {error}\n{before}\n->\n{after}"
                    );
                }
            }
        }
    }
    assert!(
        lost > 1_000 || !is_whole(),
        "only {lost} effects without an answer"
    );
}

/// A grant that is given back uses up a token. A waiter that was set aside keeps its place: its
/// ticket differs only in the first digit.
fn but_tokens(bench: &Bench) -> String {
    let picture = picture(&bench.client.server());
    let lines = picture.lines().filter(|line| !line.contains("_token:"));
    let lines: Vec<_> = lines.collect();
    lines.join("\n").replace("5700000000", "1700000000")
}

/// Reading takes nothing back and removes nothing, even if leases have expired meanwhile.
#[tokio::test(start_paused = true)]
async fn looking_writes_nothing() {
    for safety in [SafetyMode::Plain, QUARANTINE] {
        for kind in kinds() {
            for state in State::ALL {
                let bench = Bench::new(kind.clone(), safety, state).await;
                for op in [Op::Inspect, Op::Count(CounterAction::Read)] {
                    if !op.is_for(&kind) || !is_about(&kind, safety, state, op) {
                        continue;
                    }
                    bench.reset();
                    let before = picture(&bench.client.server());
                    bench.ask(op).await.unwrap();
                    let after = picture(&bench.client.server());
                    assert_eq!(before, after, "{kind:?} {state:?} {op:?}");
                }
            }
        }
    }
}
