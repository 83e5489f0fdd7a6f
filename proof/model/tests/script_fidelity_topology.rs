//! Whether the shipped scripts do on the modelled server what they do on a real one. Every script,
//! with the arguments that the shipped backend gives it.
//!
//! `LOCKTOPUS_FIDELITY_CALLS` sets how often each script is called at least, `LOCKTOPUS_FIDELITY_SEED`
//! the random numbers, and `LOCKTOPUS_FIDELITY_REPLAY` names a file with a list of steps that a
//! failure printed.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests too")]

#[path = "script_fidelity_common/mod.rs"]
mod common;

use locktopus_servers::topology::{ProviderKind, Spec, TopologyKind, start};

/// Three readers; the second, who came three seconds after the first, loses its field but not its
/// expiry, as an operation of another kind can do. Then the first leaves, and was among the longest
/// if what is left of it and of the lock differs by five at most.
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

/// Lists that part when they are sent all at once are compared so. It tells a difference from what
/// two clocks do.
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

/// All steps are sent at once first. What is kept must be compared there too: how long a token is
/// kept is in no answer.
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
