//! Waiters of a fair lock keep their order, whatever the clocks of its servers say.

use locktopus_simulator::{Focus, Kind, Plan, report, run};

fn keeps_the_order(plan: &Plan) {
    let found = run(plan, None, false).violations;
    assert!(found.is_empty(), "{}", report(plan, None));
}

/// Waiters that were set aside once came back by times that two servers had noted.
#[test]
fn a_failover_to_a_clock_that_is_behind_keeps_the_order() {
    let fair = Focus {
        kinds: &[Kind::Fair],
        mixed: false,
    };
    keeps_the_order(&Plan::about(304, Some(fair)));
}

/// The clock stands still while a batch runs, so its members come at the same time.
#[test]
fn those_that_come_in_one_batch_keep_the_order() {
    for seed in [37, 80, 98, 117, 132] {
        let mut plan = Plan::crowded(seed);
        plan.locks
            .iter_mut()
            .for_each(|lock| lock.kind = Kind::Fair);
        plan.seed = 3 * seed + 1;
        keeps_the_order(&plan);
    }
}
