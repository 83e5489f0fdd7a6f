//! Random schedules of the shipped client on simulated servers.
//!
//! `LOCKTOPUS_SIM_SCHEDULES=100000` runs more of them, `LOCKTOPUS_SIM_FROM` begins at another seed,
//! and `LOCKTOPUS_SIM_SEED=7` runs one and prints its trace.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use locktopus_simulator::{Plan, report, run};

const SCHEDULES: u64 = 1_000;

/// Every run must contain each of these.
const SEEN: [&str; 69] = [
    "ASK",
    "at least for a time",
    "clock set",
    "connections broken",
    "evict",
    "extend",
    "failover of another shard",
    "failover with loss",
    "fair_lock_acquire",
    "fewer permits",
    "group",
    "group_acquire",
    "guarded_write",
    "held: another library, in a cluster",
    "held: as redis-py",
    "held: fair lock",
    "held: lock",
    "held: mutex",
    "held: permits",
    "held: read lock",
    "held: redis-py",
    "held: Redisson",
    "held: Redisson, fair",
    "held: Redisson, permits",
    "held: Redisson, read-write",
    "held: semaphore",
    "held: single key",
    "held: write lock",
    "in use as another kind",
    "inspect",
    "kill",
    "latch",
    "latch_read",
    "lock_extend",
    "lock_linger",
    "machine asleep",
    "misplaced subscription noticed",
    "MOVED",
    "network stalled",
    "NOSCRIPT",
    "not granted",
    "orderly failover",
    "out of memory",
    "permits drained",
    "permits_counter",
    "process dead",
    "process stopped",
    "promoted again",
    "quarantined_lock_acquire",
    "read on",
    "released",
    "replica lags",
    "replicas lacking",
    "restart with data",
    "restart without data",
    "scripts flushed",
    "semaphore deleted",
    "slot moved",
    "slot moves",
    "split brain",
    "SPUBLISH",
    "subscribed",
    "taken again",
    "ticket",
    "told that it is lost",
    "TRYAGAIN",
    "WAIT",
    "woken: Redisson",
    "written",
];

fn number(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{variable}={value} is no number")),
    )
}

/// The results of many schedules.
#[derive(Default)]
struct All {
    counts: BTreeMap<&'static str, u64>,
    took: u64,
    /// In how many schedules exclusion was required to the end, and in how many only until a fault,
    /// by mode.
    required: u64,
    until: BTreeMap<String, u64>,
    failed: Vec<u64>,
}

impl All {
    /// Notes how long the schedule requires exclusion.
    fn note_exclusion(&mut self, plan: &Plan) {
        let Some((_, fault)) = plan.exclusion_ends() else {
            self.required += 1;
            return;
        };
        let mode = plan.quorum.map_or(plan.safety.as_str(), |_| "quorum");
        let why = format!("{mode}, {}", fault.name());
        *self.until.entry(why).or_default() += 1;
    }
}

/// Runs so many schedules, one per processor at a time.
fn all(first: u64, schedules: u64) -> All {
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (next, all) = (AtomicU64::new(first), Mutex::new(All::default()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + schedules {
                return;
            }
            let plan = Plan::draw(seed);
            let outcome = run(&plan, None, false);
            let mut all = all.lock().expect("no schedule panics by itself");
            all.note_exclusion(&plan);
            all.took += outcome.took;
            for (what, times) in outcome.counts {
                *all.counts.entry(what).or_insert(0) += times;
            }
            if !outcome.violations.is_empty() {
                println!("seed {seed}: {:#?}", outcome.violations);
                all.failed.push(seed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    all.into_inner().expect("no schedule panics by itself")
}

#[test]
fn a_seed_replays() {
    for seed in 0..25 {
        let plan = Plan::draw(seed);
        let (one, other) = (run(&plan, None, true), run(&plan, None, true));
        for (line, again) in one.trace.iter().zip(&other.trace) {
            assert_eq!(line, again, "seed {seed}");
        }
        assert_eq!(one, other, "seed {seed}");
        assert!(!one.trace.is_empty());
    }
}

#[test]
fn simulation() {
    if let Some(seed) = number("LOCKTOPUS_SIM_SEED") {
        let plan = Plan::draw(seed);
        let outcome = run(&plan, None, true);
        println!("{plan:#?}\n{}", outcome.trace.join("\n"));
        assert!(outcome.violations.is_empty(), "{}", report(&plan, None));
        return;
    }
    let first = number("LOCKTOPUS_SIM_FROM").unwrap_or(0);
    let schedules = number("LOCKTOPUS_SIM_SCHEDULES").unwrap_or(SCHEDULES);
    assert!(schedules > 0, "no schedule was asked for");
    let All {
        counts,
        took,
        required,
        until,
        mut failed,
    } = all(first, schedules);
    failed.sort_unstable();
    if let Some(seed) = failed.first() {
        panic!(
            "{} of {schedules} schedules failed: {failed:?}\n{}",
            failed.len(),
            report(&Plan::draw(*seed), None)
        );
    }
    println!(
        "{schedules} schedules, {} s of their time, exclusion required in {required}, until a fault in {}: {counts:#?}",
        took / 1_000,
        until.values().sum::<u64>()
    );
    println!("exclusion required until this fault: {until:#?}");
    if schedules >= SCHEDULES {
        let missing: Vec<_> = SEEN
            .iter()
            .filter(|what| !counts.contains_key(**what))
            .collect();
        assert!(missing.is_empty(), "never came about: {missing:?}");
    }
}
