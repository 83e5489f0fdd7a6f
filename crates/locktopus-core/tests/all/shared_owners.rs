//! Random schedules of owners that tasks share, and of leases that are passed on inside a process.
//! Guards are entered again, extended, dropped, released, turned into tickets and adopted. Futures
//! are dropped, and shutdowns come in the middle, while the watchdog renews and calls fail.
//!
//! `LOCKTOPUS_SCHEDULES=20000` sets the number of schedules; `LOCKTOPUS_SEED=N` runs a single one.

use crate::common;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Fate, Scripted, until};
use locktopus_core::{
    CohortSettings, FencingToken, Lease, LockError, LockGuard, LockRequest, Locktopus, LostCause,
    Owner, OwnerId, SafetyMode,
};
use locktopus_memory::MemoryBackend;
use tokio::runtime::Builder;
use tokio::time::{sleep, timeout};

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True in this percentage of cases.
    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn millis(&mut self, bound: u64) -> Duration {
        Duration::from_micros(self.below(bound * 1_000))
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }
}

/// The rules for one lock that must hold at any moment.
#[derive(Debug, Default)]
struct Judge {
    /// Every lease that may still be valid.
    leases: Vec<Lease>,
    /// How many guards each lease has.
    guards: HashMap<Key, usize>,
    newest: Option<FencingToken>,
    /// Leases with a maximum hold time.
    limited: HashSet<Key>,
    /// Tickets that were never adopted.
    left_behind: usize,
    /// Requests under way that may extend a lease of their owner.
    extending: usize,
    grants: usize,
    entered_again: usize,
    lost: usize,
}

type Key = (OwnerId, FencingToken);

fn key(lease: &Lease) -> Key {
    (lease.owner_id().clone(), lease.token().unwrap())
}

impl Judge {
    /// At most one lease is valid.
    fn look(&mut self) {
        // Not by `ensure_valid`, which would be the first to find a lease over.
        self.leases.retain(|lease| !lease.remaining().is_zero());
        let believed: Vec<_> = self.leases.iter().map(key).collect();
        assert!(
            believed.windows(2).all(|two| two[0] == two[1]),
            "two leases at once: {believed:?}"
        );
    }

    /// Records a guard of a lease that was granted, or entered again.
    fn guard(&mut self, guard: &LockGuard, limited: bool, extends: bool) {
        let key = key(&guard.lease());
        // The other guards may have gone while it was extended.
        let alone = self.newest == Some(key.1) && (extends || self.extending > 0);
        if self.add(guard) > 1 || alone {
            self.entered_again += 1;
            return;
        }
        let (_, token) = key;
        if let Some(newest) = self.newest.replace(token) {
            assert!(token > newest, "{token} after {newest}");
        }
        if limited {
            self.limited.insert(key);
        }
        self.grants += 1;
    }

    /// Adds a guard, and returns how many its lease has now.
    fn add(&mut self, guard: &LockGuard) -> usize {
        let key = key(&guard.lease());
        let known = self.guards.entry(key.clone()).or_default();
        *known += 1;
        let known = *known;
        self.counts(guard, known);
        self.leases.push(guard.lease());
        self.look();
        known
    }

    /// An owner's request that extends a fixed lease shares it until the answer comes.
    fn counts(&self, guard: &LockGuard, known: usize) {
        let counted = guard.hold_count();
        let right = (known..=known + self.extending).contains(&counted);
        assert!(right, "{counted} guards, not {known}, of {guard:?}");
    }

    fn released(&mut self, lease: &Lease, outcome: Result<(), LockError>) {
        let Err(LockError::Lost { cause, .. }) = outcome else {
            return;
        };
        self.lost += 1;
        let limited = self.limited.contains(&key(lease));
        assert!(limited || cause != LostCause::MaxHold, "of another's time");
    }

    /// Records that a guard is about to be dropped.
    fn gone(&mut self, guard: &LockGuard) {
        self.look();
        let key = key(&guard.lease());
        self.counts(guard, self.guards[&key]);
        *self.guards.get_mut(&key).unwrap() -= 1;
    }
}

/// One task of a process.
struct Task {
    locks: Locktopus,
    /// The process that tickets go to.
    elsewhere: Locktopus,
    owner: Option<Owner>,
    judge: Arc<Mutex<Judge>>,
    dice: Dice,
}

impl Task {
    fn look(&self) {
        self.judge.lock().unwrap().look();
    }

    /// A request, whether it is limited, and whether it may extend a lease that its owner holds.
    fn request(&mut self) -> (LockRequest, bool, bool) {
        let dice = &mut self.dice;
        let lease = Duration::from_millis(dice.one_of(&[60, 60, 60, 150, 400]));
        let mut request = self.locks.lock("a");
        if let Some(owner) = &self.owner {
            request = request.owner(owner);
        }
        let fixed = !dice.chance(80);
        request = if fixed {
            request.fixed_lease(lease)
        } else {
            request.renewed_lease(lease)
        };
        let limited = dice.chance(20);
        if limited {
            request = request.max_hold(Duration::from_millis(1 + dice.below(60)));
        }
        if dice.chance(20) {
            request = request.lease_cache(lease / 4);
        }
        if dice.chance(50) {
            request = request.wait_at_most(dice.millis(200));
        }
        (request, limited, fixed && self.owner.is_some())
    }

    async fn run(mut self, rounds: u32) {
        for _ in 0..rounds {
            let pause = self.dice.millis(15);
            sleep(pause).await;
            let (request, limited, extends) = self.request();
            self.judge.lock().unwrap().extending += usize::from(extends);
            let answer = if self.dice.chance(15) {
                request.try_acquire().await
            } else if self.dice.chance(20) {
                // The future is dropped, wherever it is by then.
                let limit = self.dice.millis(40);
                let answer = timeout(limit, request.acquire()).await;
                answer.map_or(Ok(None), |answer| answer.map(Some))
            } else {
                request.acquire().await.map(Some)
            };
            self.judge.lock().unwrap().extending -= usize::from(extends);
            match answer {
                Ok(Some(guard)) => {
                    self.judge.lock().unwrap().guard(&guard, limited, extends);
                    self.hold(guard).await;
                }
                Ok(None) => {}
                Err(LockError::ShutDown) => return,
                Err(_) => self.look(),
            }
        }
    }

    async fn hold(&mut self, guard: LockGuard) {
        let mut guards = vec![guard];
        for _ in 0..self.dice.below(4) {
            let pause = self.dice.millis(30);
            sleep(pause).await;
            self.look();
            match self.dice.below(4) {
                0 => {
                    if let Ok(again) = guards[0].reenter() {
                        self.judge.lock().unwrap().guard(&again, false, false);
                        guards.push(again);
                    }
                }
                1 => {
                    let lease = Duration::from_millis(self.dice.one_of(&[30, 60, 200]));
                    let _ = guards[0].extend(lease).await;
                }
                2 => {
                    // The extension may come late, or not at all.
                    let limit = self.dice.millis(3);
                    let _ = timeout(limit, guards[0].extend(Duration::from_millis(100))).await;
                }
                _ => {}
            }
            self.look();
        }
        while let Some(guard) = guards.pop() {
            let pause = self.dice.millis(5);
            sleep(pause).await;
            self.end(guard).await;
        }
    }

    async fn end(&mut self, guard: LockGuard) {
        let judge = Arc::clone(&self.judge);
        let gone = |guard: &LockGuard| judge.lock().unwrap().gone(guard);
        match self.dice.below(10) {
            0..3 => {
                gone(&guard);
                drop(guard);
            }
            3..5 => self.travel(guard).await,
            5 => {
                gone(&guard);
                let limit = self.dice.millis(4);
                let _ = timeout(limit, guard.release()).await;
            }
            _ => {
                gone(&guard);
                let lease = guard.lease();
                let outcome = guard.release().await;
                judge.lock().unwrap().released(&lease, outcome);
            }
        }
        self.look();
    }

    /// Sends it as a ticket to another process, or back to this one.
    async fn travel(&mut self, guard: LockGuard) {
        let judge = Arc::clone(&self.judge);
        let lease = Duration::from_millis(60);
        let left = key(&guard.lease());
        let taken = judge.lock().unwrap().guards[&left];
        judge.lock().unwrap().counts(&guard, taken);
        let ticket = match guard.into_ticket() {
            Ok(ticket) => ticket,
            Err(guard) => {
                judge.lock().unwrap().gone(&guard);
                drop(guard);
                return;
            }
        };
        assert_eq!(taken, 1, "shared with other guards");
        judge.lock().unwrap().guards.insert(left, 0);
        self.look();
        let pause = self.dice.millis(10);
        sleep(pause).await;
        self.look();
        if self.dice.chance(20) {
            judge.lock().unwrap().left_behind += 1;
            return;
        }
        let request = self.elsewhere.lock("a").renewed_lease(lease);
        match request.adopt(&ticket).await {
            Ok(guard) => {
                judge.lock().unwrap().add(&guard);
                let pause = self.dice.millis(60);
                sleep(pause).await;
                judge.lock().unwrap().gone(&guard);
                drop(guard.release().await);
            }
            Err(_) => judge.lock().unwrap().left_behind += 1,
        }
    }
}

/// Makes calls fail now and then. None arrives later than twice the time for its answer, because by
/// then no reaper would release it.
async fn break_things(scripts: [Scripted; 2], mut dice: Dice) {
    loop {
        let pause = dice.millis(20);
        sleep(pause).await;
        let script = &scripts[usize::from(dice.chance(40))];
        let call = dice.one_of(&["attempt", "attempt", "release", "extend", "extend"]);
        let fates: Vec<_> = (0..=dice.below(3))
            .map(|_| match dice.below(6) {
                0 => Fate::Refuse,
                1 => Fate::LoseReply,
                2 => Fate::SlowReply(dice.millis(30)),
                3 => Fate::SlowReplyInTime(dice.millis(60)),
                4 => Fate::Late(dice.millis(40)),
                _ => Fate::Pass,
            })
            .collect();
        if dice.chance(15) {
            // Longer than many leases.
            script.always(call, dice.one_of(&[Fate::Refuse, Fate::Hang]));
            let outage = dice.millis(150);
            sleep(outage).await;
            script.always(call, Fate::Pass);
            continue;
        }
        script.next(call, fates);
    }
}

async fn shut_down(locks: [Locktopus; 2], mut dice: Dice) {
    let pause = dice.millis(400);
    sleep(pause).await;
    let (first, second) = (locks[0].clone(), locks[0].clone());
    let pause = dice.millis(5);
    let again = async {
        sleep(pause).await;
        second.shutdown(Duration::from_secs(5)).await
    };
    let grace = Duration::from_secs(5);
    let (first, again) = tokio::join!(first.shutdown(grace), again);
    assert_eq!((first.abandoned, again.abandoned), (0, 0));
}

async fn schedule(seed: u64, judge: Arc<Mutex<Judge>>) {
    let mut dice = Dice(seed);
    let script = Scripted::new().with_safety(SafetyMode::Plain);
    let cohort = CohortSettings {
        turns: dice.one_of(&[1, 3, 64]),
        budget: Duration::from_millis(dice.one_of(&[5, 20, 2_000])),
    };
    let mut another = Scripted::new().with_safety(SafetyMode::Plain);
    another.store = script.store.another_client();
    let both = [&script, &another].map(|script| script.builder().cohort(cohort).build().unwrap());
    let owners = [Owner::new(), Owner::new()];
    let tasks: Vec<_> = (0..2 + dice.below(6))
        .map(|_| {
            let here = usize::from(dice.chance(30));
            let whose = usize::from(dice.chance(50));
            Task {
                locks: both[here].clone(),
                elsewhere: both[usize::from(dice.chance(50))].clone(),
                // An owner's leases belong to one `Locktopus`.
                owner: (here == 0 && dice.chance(75)).then(|| owners[whose].clone()),
                judge: Arc::clone(&judge),
                dice: Dice(dice.next()),
            }
        })
        .map(|task| tokio::spawn(task.run(12)))
        .collect();
    let breaking = dice.chance(70).then(|| {
        tokio::spawn(break_things(
            [script.clone(), another.clone()],
            Dice(dice.next()),
        ))
    });
    let shutting = dice
        .chance(30)
        .then(|| tokio::spawn(shut_down(both.clone(), Dice(dice.next()))));
    for task in tasks {
        task.await.unwrap();
    }
    let broken = breaking.is_some();
    if let Some(breaking) = breaking {
        breaking.abort();
    }
    for (script, call) in [&script, &another]
        .into_iter()
        .flat_map(|script| ["attempt", "release", "extend"].map(|call| (script, call)))
    {
        script.next(call, []);
        script.always(call, Fate::Pass);
    }
    if let Some(shutting) = shutting {
        shutting.await.unwrap();
    }
    for locks in both {
        let report = locks.shutdown(Duration::from_secs(10)).await;
        assert_eq!(report.abandoned, 0);
    }
    // Tickets that were never adopted expire, and so does what could not be given back.
    if broken || judge.lock().unwrap().left_behind > 0 {
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(script.store.population(), (0, 0), "something is left");
}

/// The lease that is inside, and how many guards it has.
#[derive(Debug, Default)]
struct Inside {
    now: Mutex<Option<(Key, usize)>>,
    /// From now on locks are taken away from their holders.
    over: AtomicBool,
}

impl Inside {
    fn enter(&self, guard: &LockGuard) {
        let key = key(&guard.lease());
        let mut inside = self.now.lock().unwrap();
        if self.over.load(Ordering::SeqCst) {
            return;
        }
        match &mut *inside {
            Some((whose, guards)) => {
                assert_eq!(*whose, key, "two holders at once");
                *guards += 1;
            }
            nobody => *nobody = Some((key, 1)),
        }
    }

    fn leave(&self) {
        let mut inside = self.now.lock().unwrap();
        if self.over.load(Ordering::SeqCst) {
            return;
        }
        let (_, guards) = inside.as_mut().unwrap();
        *guards -= 1;
        if *guards == 0 {
            *inside = None;
        }
    }
}

async fn on_a_thread(
    locks: Locktopus,
    owner: Owner,
    inside: Arc<Inside>,
    travels: bool,
    mut dice: Dice,
) {
    for _ in 0..150 {
        let request = locks.lock("a").owner(&owner);
        let request = match dice.below(3) {
            0 => request.lease_cache(Duration::from_millis(1)),
            _ => request,
        };
        let limit = match dice.below(4) {
            0 => dice.millis(1),
            _ => Duration::from_secs(60),
        };
        let guard = match timeout(limit, request.acquire()).await {
            Ok(Ok(guard)) => guard,
            // The other guards of this owner are lost then.
            Ok(Err(
                LockError::ShutDown
                | LockError::Lost {
                    cause: LostCause::ShutDown,
                    ..
                },
            )) => return,
            Ok(Err(error)) => panic!("{error:?}"),
            Err(_) => continue,
        };
        inside.enter(&guard);
        if dice.chance(30) {
            tokio::task::yield_now().await;
        }
        if dice.chance(30)
            && let Ok(again) = guard.reenter()
        {
            inside.enter(&again);
            tokio::task::yield_now().await;
            inside.leave();
            drop(again);
        }
        inside.leave();
        match dice.below(4) {
            0 => drop(guard),
            1 if travels => {
                if let Ok(ticket) = guard.into_ticket()
                    && let Ok(guard) = locks.lock("a").adopt(&ticket).await
                {
                    inside.enter(&guard);
                    inside.leave();
                    drop(guard);
                }
            }
            _ => drop(guard.release().await),
        }
    }
}

/// The same on threads that run in parallel, with leases that are not lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn owners_shared_between_threads_hold_a_lock_as_one_until_it_is_shut_down() {
    for seed in 0..number("LOCKTOPUS_SCHEDULES").map_or(20, |most| most / 10) {
        // A ticket under way at that moment would stay behind.
        let ends_early = seed % 2 == 0;
        let mut dice = Dice(seed);
        let store = MemoryBackend::new();
        let both = [store.clone(), store.another_client()]
            .map(|store| Locktopus::builder(store).build().unwrap());
        let inside = Arc::<Inside>::default();
        let tasks: Vec<_> = both
            .iter()
            .flat_map(|locks| {
                let owners = [Owner::new(), Owner::new()];
                let tasks = (0..6).map(|at| (locks.clone(), owners[at % 2].clone()));
                tasks.collect::<Vec<_>>()
            })
            .map(|(locks, owner)| {
                let (inside, dice) = (Arc::clone(&inside), Dice(dice.next()));
                tokio::spawn(on_a_thread(locks, owner, inside, !ends_early, dice))
            })
            .collect();
        if ends_early {
            sleep(dice.millis(20)).await;
            // Holders learn of the loss, and may no longer be alone.
            inside.over.store(true, Ordering::SeqCst);
            let grace = Duration::from_secs(60);
            let [one, other] = &both;
            let reports = tokio::join!(
                one.shutdown(grace),
                one.shutdown(grace),
                other.shutdown(grace)
            );
            assert_eq!(
                (
                    reports.0.abandoned,
                    reports.1.abandoned,
                    reports.2.abandoned
                ),
                (0, 0, 0)
            );
            assert_eq!(store.population().0, 0, "seed {seed}");
        }
        for task in tasks {
            task.await.unwrap();
        }
        for locks in both {
            assert_eq!(locks.shutdown(Duration::from_secs(60)).await.abandoned, 0);
        }
        let looking = Locktopus::builder(store.another_client()).build().unwrap();
        let left = looking.lock("a").inspect().await.unwrap();
        assert!(
            left.holders.is_empty() && left.waiters.is_empty(),
            "{left:?}"
        );
        // A task that listened for a kept lease ends with it, and the shutdown does not wait for
        // that.
        until("nobody listens", || store.population() == (0, 0)).await;
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn owners_shared_between_tasks_hold_a_lock_as_one() {
    let seeds = match number("LOCKTOPUS_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("LOCKTOPUS_SCHEDULES").unwrap_or(300),
    };
    let (mut grants, mut again, mut lost) = (0, 0, 0);
    for seed in seeds.clone() {
        println!("LOCKTOPUS_SEED={seed}");
        let judge = Arc::<Mutex<Judge>>::default();
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let hour = Duration::from_secs(3_600);
        let ended = runtime.block_on(async { timeout(hour, schedule(seed, judge.clone())).await });
        ended.expect("it ends");
        let judge = judge.lock().unwrap();
        grants += judge.grants;
        again += judge.entered_again;
        lost += judge.lost;
    }
    println!("{grants} grants, {again} entered again, {lost} lost");
    // Makes sure that the schedules exercise what they are meant to.
    let schedules = usize::try_from(seeds.end - seeds.start).unwrap();
    if schedules >= 100 {
        assert!(grants > schedules * 10 && again > schedules * 5 && lost > schedules / 2);
    }
}
