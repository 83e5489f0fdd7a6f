//! Schedules of the shipped client notice scripts with one rule broken, and report nothing with the
//! original scripts.
//!
//! `LOCKTOPUS_SIM_MUTANT=words` tries all mutants whose names contain the words, also those never
//! noticed so far, and prints the result. `LOCKTOPUS_SIM_SCHEDULES` sets the number of schedules.

use locktopus_model::layout::Kind as Modelled;
use locktopus_simulator::{Flaw, Focus, Kind, Plan, report, run, wrong_scripts};

/// How many schedules may be needed to notice each, unless the environment sets another number.
const SCHEDULES: u64 = 1_000;

/// The seed that showed each last, which is tried first.
const SEEN: &[(&str, u64)] = &[
    ("a cancelled attempt that was granted is left alone", 0),
    ("a cancelled place is kept", 0),
    ("a clock that is set back reorders the queue", 3_996),
    ("a head that is passed over is taken out of the line", 1),
    ("a line that is put back is there for ever", 2),
    ("a lock has no expiry", 0),
    ("a lock is extended whoever asks", 1),
    ("a lock is handed on for a quarter of the lease", 0),
    (
        "a lock is handed on for a quarter of the lease, the long way",
        0,
    ),
    ("a lock is handed on for ever", 0),
    ("a lock is handed on for ever, the long way", 0),
    ("a lock is handed on with the old token", 0),
    ("a lock is handed on with the old token, the long way", 0),
    ("a lock is released whoever asks", 0),
    ("a mutex is extended whoever asks", 1),
    ("a mutex is released whoever asks", 0),
    ("a newcomer goes before the queue", 2),
    ("a place is given up that is another one's", 1),
    ("a queue is kept for ever", 0),
    ("a release hands nothing on", 0),
    ("a repeated attempt shortens the lease", 0),
    ("a script touches another key", 0),
    ("a token is published before it is certain", 1),
    (
        "a token is published before it is certain, by one who finds the lock free",
        11,
    ),
    (
        "a token is published before it is certain, in the queue of the fair lock",
        11,
    ),
    ("a token is published before it is certain, the long way", 5),
    ("a token is published before it is certain, with permits", 0),
    ("a waiter extends the holder's lease", 0),
    ("a waiter that does not listen is handed the lock", 1),
    (
        "a waiter that does not listen is handed the lock, the long way",
        11,
    ),
    ("a waiter that leaves a free lock tells nobody", 1_322),
    ("an extension creates a lock", 1),
    ("heartbeats are kept for ever", 1),
    ("heartbeats do not count", 4),
    ("late attempts are not refused", 28),
    ("newcomers go to the head of the queue", 1),
    ("nobody hears of a release", 33),
    (
        "nobody hears of a release that expected somebody in line",
        41,
    ),
    (
        "one who was handed the lock counts as standing in line",
        234,
    ),
    ("one who was handed the lock keeps its place", 0),
    (
        "one who was handed the lock keeps its place, the long way",
        0,
    ),
    (
        "permits that come back are not handed on by one who wants more",
        1_559,
    ),
    ("the clock is read again", 1),
    ("the holder is told that somebody holds the lock", 0),
    ("the lock is handed to one whose heartbeats have ended", 90),
    (
        "the lock is handed to one whose heartbeats have ended, the long way",
        251,
    ),
    ("the lock is handed to the dead", 90),
    ("the lock is handed to the dead, the long way", 251),
    (
        "the place of one who says nothing about it is not looked for",
        216,
    ),
    ("with a heartbeat a waiter goes to the end of the line", 3),
    ("tokens are reserved one by one, the long way", 8),
    ("tokens are reserved one by one", 94),
    ("nobody is asked for a lease that is kept", 82),
    (
        "the first to wait does not ask for a lease that is kept",
        689,
    ),
    (
        "the holder of a mutex is not told, but the note is gone",
        82,
    ),
    ("where a holder listens is noted for ever", 0),
    ("tokens are counted", 206),
    ("a read-write lock is taken on a lock that is held", 21),
    ("a fair lock waits for a lock", 17),
    ("a read-write lock that is held is shown as a lock", 65),
    ("a number is given to a mutex that is held", 4),
    ("a latch is set on a mutex that is held", 12),
    ("a mutex waits for a semaphore", 0),
    ("permits with ids are taken from a semaphore", 3_662),
    ("the kind of a number is not read", 4),
];

fn kinds(kind: Modelled) -> &'static [Kind] {
    match kind {
        Modelled::Lock => &[Kind::Lock],
        Modelled::Mutex => &[Kind::Mutex],
        Modelled::Fair => &[Kind::Fair],
        Modelled::ReadWrite => &[Kind::ReadWrite],
        Modelled::Semaphore => &[Kind::Semaphore(1), Kind::Semaphore(2), Kind::Semaphore(3)],
        Modelled::Permits => &[Kind::Permits(1), Kind::Permits(2), Kind::Permits(3)],
    }
}

#[test]
fn mutants_of_scripts_are_noticed() {
    let only = std::env::var("LOCKTOPUS_SIM_MUTANT").unwrap_or_default();
    let schedules = std::env::var("LOCKTOPUS_SIM_SCHEDULES").map_or(SCHEDULES, |number| {
        number.parse().expect("LOCKTOPUS_SIM_SCHEDULES is a number")
    });
    let mut all = wrong_scripts();
    // By default, only those noticed before.
    all.retain(|wrong| match only.as_str() {
        "" => SEEN.iter().any(|(seen, _)| *seen == wrong.name),
        only => wrong.name.contains(only),
    });
    assert!(!all.is_empty(), "no mutant is called {only:?}");
    assert!(
        all.len() == SEEN.len() || !only.is_empty(),
        "a mutant is gone"
    );
    let next = std::sync::atomic::AtomicUsize::new(0);
    let survivors = std::sync::Mutex::new(Vec::new());
    let work = || {
        while let Some(wrong) = all.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
            let name = wrong.name;
            let kinds = kinds(wrong.kind);
            let focus = Focus {
                // With two kinds for one name, a kind has only one number.
                kinds: if wrong.mixed { &kinds[..1] } else { kinds },
                mixed: wrong.mixed,
            };
            let seen = SEEN.iter().filter(|(seen, _)| *seen == name);
            let seeds = seen.map(|(_, seed)| *seed).chain(0..schedules);
            let noticed = { seeds }.find_map(|seed| {
                let plan = Plan::about(seed, Some(focus));
                let found = run(&plan, Some(Flaw::Script(wrong.patch)), false).violations;
                let first = found.into_iter().next()?;
                let shipped = run(&plan, None, false).violations;
                assert!(
                    shipped.is_empty(),
                    "{focus:?}, as shipped:\n{}",
                    report(&plan, None)
                );
                Some((seed, first))
            });
            match noticed {
                Some((seed, violation)) => println!("{name}: seed {seed}, {violation:?}"),
                None => {
                    println!("{name}: NOT NOTICED");
                    survivors.lock().expect("nobody panics").push(name);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    let survivors = survivors.into_inner().expect("nobody panics");
    assert!(survivors.is_empty(), "not noticed: {survivors:#?}");
}
