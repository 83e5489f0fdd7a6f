//! Whether the shipped scripts do the same on the modelled server as on a real one: every script,
//! with the arguments that the shipped backend passes.
//!
//! `LOCKTOPUS_FIDELITY_CALLS` sets the least number of calls of each script,
//! `LOCKTOPUS_FIDELITY_SEED` the seed, and `LOCKTOPUS_FIDELITY_REPLAY` names a file with a list of
//! steps that a failure printed.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

#[path = "script_fidelity_common/mod.rs"]
mod common;

use locktopus_servers::topology::{ProviderKind, Spec, TopologyKind, start};

/// Three readers. The second, three seconds after the first, loses its field but not its expiry, as
/// an operation of another kind can cause. Then the first leaves; it counts as one of the longest
/// if its remaining time and the lock's differ by at most five.
const THREE_SECONDS: &str = "
listen 0 plain 'redisson_rwlock:{it}'
call read_lock_acquire 1762491218466921 5 'it' 'redisson_lock_token:{it}' 'locktopus_queue:{it}' 'locktopus_waiters:{it}' '{it}' \
'client:first' '200000' '86400000' '1762491219564339' 'r' '1' '0' '0' 'PUBLISH'
call read_lock_acquire 1762491221473856 5 'it' 'redisson_lock_token:{it}' 'locktopus_queue:{it}' 'locktopus_waiters:{it}' '{it}' \
'client:second' '200000' '86400000' '1762491222557404' 'r' '1' '0' '0' 'PUBLISH'
call read_lock_acquire 1762491221488431 5 'it' 'redisson_lock_token:{it}' 'locktopus_queue:{it}' 'locktopus_waiters:{it}' '{it}' \
'client:third' '100000' '86400000' '1762491222573856' 'r' '1' '0' '0' 'PUBLISH'
command 'HDEL' 'it' 'client:second'
call read_lock_release 1762491221512751 5 'it' 'redisson_lock_token:{it}' 'locktopus_queue:{it}' 'locktopus_waiters:{it}' '{it}' \
'client:first' 'r' '1' 'PUBLISH' 'redisson_rwlock:{it}' '86400000' 'locktopus_native:{it}' '' '' '50000' '100000' '0' 'inbox'
lapse 35000
";

/// If a list sent all at once makes the servers differ, it is compared like this, which excludes
/// effects of the two clocks.
#[test]
fn compared_step_by_step_servers_differ_where_scripts_do() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let spec = Spec::new(TopologyKind::Standalone);
    let place = runtime.block_on(start(ProviderKind::Plain, &spec)).unwrap();
    let parting = |limit: &str| {
        let change = ["own + 5", &format!("own + {limit}")];
        common::parting(place.nodes()[0].addr(), THREE_SECONDS, change)
    };
    assert_eq!(parting("5"), None);
    let told = parting("10000").unwrap();
    assert!(told.contains("'it' hash"), "{told}");
    assert!(parting("0").is_none());
    runtime.block_on(place.stop()).unwrap();
}

/// All steps are first sent at once, and the keys must be compared there too: no reply tells how
/// long a token is kept.
#[test]
fn sent_all_at_once_servers_differ_where_they_keep_something_else() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let spec = Spec::new(TopologyKind::Standalone);
    let place = runtime.block_on(start(ProviderKind::Plain, &spec)).unwrap();
    let change = ["'PX', keep, 'GET'", "'PX', 2 * keep, 'GET'"];
    let told = common::random_parting(place.nodes()[0].addr(), change, 20);
    let told = told.unwrap_or_else(|called| panic!("nothing differed: {called}"));
    let rounds: Vec<&str> = told.split("first, sent all at once").collect();
    assert_eq!(rounds.len(), 2, "{told}");
    for round in rounds {
        let (real, model) = round.split_once("model keeps").expect(&told);
        let kept = |side: &str| side.contains("'redisson_lock_token:");
        assert!(kept(real) && kept(model), "{told}");
    }
    runtime.block_on(place.stop()).unwrap();
}

#[test]
fn each_script_does_what_it_does_on_a_real_server() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let spec = Spec::new(TopologyKind::Standalone);
    let place = runtime.block_on(start(ProviderKind::Plain, &spec)).unwrap();
    common::compare("processes", place.nodes()[0].addr(), 200);
    runtime.block_on(place.stop()).unwrap();
}
