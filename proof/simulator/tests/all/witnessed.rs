//! Schedules written by hand that seem to break a rule of the witness and do not, each beside a
//! flaw that the rule must notice.

use crate::common::{act, one_name, process, rules};
use locktopus_simulator::{Act, Fault, Flaw, Kind, Patch, Plan, Wait};

/// Tasks, each in its own process, that use one name as these kinds.
fn plan(kinds: &[Kind], tasks: Vec<Vec<Act>>, faults: Vec<(u64, Fault)>) -> Plan {
    let processes = tasks.into_iter().map(|task| process(vec![task]));
    crate::common::plan(&one_name(kinds), processes.collect(), faults)
}

/// The mutant "a waiter that leaves a free lock tells nobody".
const TELLS_NOBODY: Flaw = Flaw::Script(Patch {
    script: "_release",
    from: "free = fine and code == 0",
    to: "free = false",
    more: &[],
});

/// A waiter gives up its place after the holder's lease has expired, but the server lacks replicas
/// and refuses all writes. So the place is still there, no script has looked at the lock, and the
/// next waiter gets it later.
#[test]
fn a_place_that_cannot_be_given_up_hands_nothing_on() {
    for kind in [Kind::Lock, Kind::Fair, Kind::Mutex] {
        let mut holds = act(0, 0, 1_000);
        holds.fixed_lease = Some(400);
        let mut leaves = act(100, 0, 10);
        leaves.wait = Wait::AtMost(350);
        let lacking = vec![(300, Fault::LacksReplicas(0, 500))];
        let two = plan(&[kind], vec![vec![holds], vec![leaves]], lacking);
        // The waiter that leaves last hands the free lock to the one behind it.
        let mut three = two.clone();
        three.processes.push(three.processes[1].clone());
        three.processes[2].tasks[0] = vec![act(150, 0, 10)];
        let mut noticed = 0;
        for seed in 0..20 {
            let of = |plan: &Plan| Plan {
                seed,
                ..plan.clone()
            };
            assert_eq!(rules(&of(&two), None), Vec::<&str>::new(), "{kind:?}");
            assert_eq!(rules(&of(&three), None), Vec::<&str>::new(), "{kind:?}");
            let found = rules(&of(&three), Some(TELLS_NOBODY));
            noticed += usize::from(found.contains(&"what is free is handed on"));
        }
        assert!(noticed > 0, "{kind:?}");
    }
}

/// A task counts a latch down and misses the reply. Another one takes the name as a lock, and the
/// first one asks again.
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
        // With the flaw the script answers that nothing was done, though it was.
        let found = rules(&plan, Some(forgets));
        noticed += usize::from(found.contains(&"kinds are kept apart"));
    }
    assert!(noticed > 0, "nobody asked again while the lock was held");
}

/// A reader holds, a writer waits and dies, and two readers wait behind it.
fn behind_the_dead(seed: u64) -> Plan {
    let mut acts = [
        act(0, 0, 1_500),
        act(50, 0, 10),
        act(100, 0, 10),
        act(110, 0, 10),
    ];
    for reads in [0, 2, 3] {
        acts[reads].exclusive = false;
    }
    let tasks = acts.into_iter().map(|act| vec![act]).collect();
    let mut plan = plan(&[Kind::ReadWrite], tasks, vec![(300, Fault::Die(1))]);
    // With these seeds the clock advances while scripts run.
    plan.seed = 3 * seed + 2;
    plan
}

/// A waiter leaves just when the holder's lease expires, and another one waits behind it.
fn leaves_at_the_end(seed: u64, wait: u64) -> Plan {
    let mut holds = act(0, 0, 1_000);
    holds.fixed_lease = Some(400);
    let mut leaves = act(100, 0, 10);
    leaves.wait = Wait::AtMost(wait);
    let mut plan = plan(
        &[Kind::Lock],
        vec![vec![holds], vec![leaves], vec![act(150, 0, 10)]],
        Vec::new(),
    );
    plan.seed = 3 * seed + 2;
    plan
}

/// The script saw the writer as alive, or the lock as held, and was right at that time. By its end
/// neither was true.
#[test]
fn what_ends_while_a_script_runs_is_handed_on_by_the_next() {
    for seed in 0..40 {
        let found = rules(&behind_the_dead(seed), None);
        assert_eq!(found, Vec::<&str>::new(), "seed {seed}");
    }
    for (seed, wait) in (10..15).flat_map(|seed| (294..302).map(move |wait| (seed, wait))) {
        let found = rules(&leaves_at_the_end(seed, wait), None);
        assert_eq!(found, Vec::<&str>::new(), "seed {seed}, {wait} ms");
    }
}

/// The same for readers: one has expired but is still stored, and the last reader's lease ends with
/// all that is stored, before the script that found it in the writer's way.
#[test]
fn readers_that_end_while_a_script_runs_are_not_removed_by_it() {
    for seed in [23_660, 322_490] {
        assert_eq!(
            rules(&Plan::draw(seed), None),
            Vec::<&str>::new(),
            "seed {seed}"
        );
    }
}

/// A fair lock is held with a fixed lease, and others keep asking for its name as a mutex.
fn asked_for_at_the_end(seed: u64) -> Plan {
    let mut holds = act(0, 0, 300);
    holds.fixed_lease = Some(120);
    let mut asks = act(1, 1, 1);
    asks.wait = Wait::Try;
    let mut tasks = vec![vec![holds]];
    tasks.resize(5, vec![asks; 25]);
    let mut plan = plan(&[Kind::Fair, Kind::RedisPy], tasks, Vec::new());
    // With these seeds the clock advances while scripts run.
    plan.seed = 3 * seed + 2;
    plan
}

/// It was a fair lock when the script began, and expired while the script ran.
#[test]
fn what_ends_while_a_script_runs_was_not_changed_by_it() {
    let deletes = Flaw::Script(Patch {
        script: "mutex_acquire",
        from: "return redis.error_reply(string.format('WRONGKIND",
        to: "redis.call('DEL', KEYS[1]) return redis.error_reply(string.format('WRONGKIND",
        more: &[],
    });
    let mut noticed = 0;
    for seed in 0..60 {
        let plan = asked_for_at_the_end(seed);
        assert_eq!(rules(&plan, None), Vec::<&str>::new(), "seed {seed}");
        let found = rules(&plan, Some(deletes));
        noticed += usize::from(found.contains(&"kinds are kept apart"));
    }
    assert!(noticed > 0, "nobody asked while the lock was held");
}

/// While a slot moved, a server lost the records and deadlines of a line but not the line, so
/// returning waiters get a second place. If the slot loses nothing, they do not.
#[test]
fn a_line_that_lost_its_records_has_places_twice() {
    for seed in [124_367, 139_558] {
        assert_eq!(
            rules(&Plan::draw(seed), None),
            Vec::<&str>::new(),
            "seed {seed}"
        );
    }
    let forgets_places = Flaw::Script(Patch {
        script: "fair_lock_acquire",
        from: "local ahead = not aside and (not new or known ~= 0) and redis.call('LPOS', KEYS[3], owner)",
        to: "local ahead = false",
        more: &[],
    });
    let tasks = vec![vec![act(0, 0, 3_000)], vec![act(100, 0, 10)]];
    let mut plan = plan(&[Kind::Fair], tasks, vec![(300, Fault::MoveSlot(0, 100))]);
    plan.replicas = vec![0, 0, 0];
    assert_eq!(rules(&plan, None), Vec::<&str>::new());
    let found = rules(&plan, Some(forgets_places));
    assert!(found.contains(&"one place each"), "{found:?}");
}
