//! How long a waiter may wait without faults, if it gets no message or must get one.

use crate::common::{act, process};
use locktopus_simulator::{
    Count, End, Flaw, Kind, Plan, ProcessPlan, Strategy, Violation, Wait, run,
};

const KEPT: u64 = 1_500;

/// A schedule without faults.
fn plan(locks: &[(&str, Kind)], processes: Vec<ProcessPlan>) -> Plan {
    Plan {
        steady: true,
        lease: 6_000,
        ..crate::common::plan(locks, processes, Vec::new())
    }
}

fn wrong(plan: &Plan) -> Vec<Violation> {
    run(plan, None, false).violations
}

/// The process listened for permits a moment ago, and now waits for a semaphore of the same name,
/// whose releases come on the same channel.
#[test]
fn kinds_that_share_a_channel_are_both_woken() {
    let mut deletes = act(20, 0, 1_000);
    deletes.end = End::Count(Count::Delete);
    let holds = process(vec![vec![act(0, 0, 60), deletes], vec![act(150, 1, 250)]]);
    let mut gives_up = act(20, 0, 10);
    gives_up.wait = Wait::AtMost(30);
    let mut notified = act(200, 1, 10);
    notified.strategy = Strategy::Notify;
    let waits = process(vec![vec![gives_up], vec![notified]]);
    let kinds = [("a", Kind::Permits(1)), ("a", Kind::Semaphore(1))];
    assert_eq!(wrong(&plan(&kinds, vec![holds, waits])), Vec::new());
}

/// Deleted permits continue as a semaphore: nobody gives back permits that no longer exist.
#[test]
fn permits_that_became_a_semaphore_are_not_given_back() {
    let mut deletes = act(20, 0, 200);
    deletes.end = End::Count(Count::Delete);
    let counts = process(vec![vec![deletes]]);
    let begins = process(vec![vec![act(100, 1, 200)]]);
    let kinds = [("a", Kind::Permits(1)), ("a", Kind::Semaphore(1))];
    assert_eq!(wrong(&plan(&kinds, vec![counts, begins])), Vec::new());
}

/// It cannot recall a cached lease, so it waits until that is given back, and no longer.
#[test]
fn a_lease_that_is_kept_is_in_the_way_of_a_single_key() {
    for kind in [Kind::SingleKey, Kind::RedisPy] {
        // The last act keeps the process alive, which would give the lease back at its end.
        let mut keeps = process(vec![vec![act(0, 0, 50)], vec![act(KEPT + 200, 2, 0)]]);
        keeps.keep = KEPT;
        let asks = process(vec![vec![act(60, 1, 600)]]);
        let locks = [("a", Kind::Mutex), ("a", kind), ("b", Kind::Lock)];
        let mut plan = plan(&locks, vec![keeps, asks]);
        let kept = run(&plan, None, false);
        assert_eq!(kept.violations, Vec::new());
        assert!(kept.took > KEPT + 600, "{} ms", kept.took);
        plan.processes[0].keep = 0;
        assert!(run(&plan, None, false).took < KEPT + 600);
    }
}

/// The release of a single key is not announced, so the mutex polls with its heartbeat.
#[test]
fn a_release_of_which_nothing_is_said_is_seen_with_a_heartbeat() {
    for strategy in [Strategy::HandOff, Strategy::Confirm, Strategy::Notify] {
        for kind in [Kind::SingleKey, Kind::RedisPy] {
            let holds = process(vec![vec![act(0, 1, 60)]]);
            let mut waits = act(20, 0, 10);
            waits.strategy = strategy;
            let locks = [("a", Kind::Mutex), ("a", kind)];
            let plan = plan(&locks, vec![holds, process(vec![vec![waits]])]);
            assert_eq!(wrong(&plan), Vec::new());
        }
    }
}

/// An expired lease is not announced. A newcomer behind other waiters does not know the deadline
/// either, so it polls with its heartbeat.
#[test]
fn a_lease_that_runs_out_is_seen_with_a_heartbeat() {
    let mut lapses = act(10, 0, 300);
    lapses.fixed_lease = Some(110);
    // The lease expires during the last write.
    lapses.end = End::Write;
    let tasks = [act(0, 0, 250), lapses, act(240, 0, 10)];
    let processes = tasks.map(|act| process(vec![vec![act]])).to_vec();
    let mut plan = plan(&[("a", Kind::Lock)], processes);
    plan.lease = 6_000;
    plan.travel = 10;
    assert_eq!(wrong(&plan), Vec::new());
}

/// A group holds one of its locks while it waits for the other one, which is in use.
#[test]
fn a_group_has_a_lock_before_it_has_all() {
    let mut both = act(10, 0, 20);
    both.also = Some(1);
    for wait in [Wait::Forever, Wait::AtMost(350), Wait::Dropped(350)] {
        both.wait = wait;
        let locks = [("a", Kind::Fair), ("b{z}", Kind::Fair)];
        let processes = [act(0, 1, 400), both.clone(), act(50, 0, 20)];
        let processes = processes.map(|act| process(vec![vec![act]])).to_vec();
        assert_eq!(wrong(&plan(&locks, processes)), Vec::new());
    }
}

/// Redisson's lock sees another kind as free or as held, and only locks wake it.
#[test]
fn redisson_waits_for_what_is_in_use_as_another_kind() {
    for kind in [Kind::Semaphore(3), Kind::Permits(3), Kind::ReadWrite] {
        let holds = process(vec![vec![act(0, 1, 60)]]);
        let mut redisson = process(vec![vec![act(30, 0, 10)]]);
        redisson.neighbour = true;
        let plan = plan(&[("a", Kind::Lock), ("a", kind)], vec![holds, redisson]);
        assert_eq!(wrong(&plan), Vec::new());
    }
}

/// All work for so long that the last one gets the lock after more than a minute. With the flaw,
/// the first one never frees it, and hands it to nobody, as nobody queues.
#[test]
fn who_waits_for_long_work_does_not_wait_for_ever() {
    let mut act = act(0, 0, 9_000);
    act.strategy = Strategy::Poll;
    let works = process(vec![vec![act; 2]]);
    let mut plan = plan(&[("a", Kind::Lock)], vec![works; 4]);
    plan.steady = false;
    let done = run(&plan, None, false);
    assert_eq!(done.violations, Vec::new());
    assert!(done.took > 72_000, "{} ms", done.took);
    let stuck = run(&plan, Some(Flaw::NeverFrees), false);
    let waits = |it: &Violation| it.rule == "nobody waits for ever";
    assert!(stuck.violations.iter().any(waits), "{stuck:?}");
    // A minute after the last work.
    assert!(stuck.took < 72_000, "{} ms", stuck.took);
}
