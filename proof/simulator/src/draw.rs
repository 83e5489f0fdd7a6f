//! Draws a schedule from a seed.

mod wrong;

use std::mem::discriminant;
use std::time::Duration;

use locktopus_core::{ReplicaNeed, SafetyMode};
use locktopus_model::Rng;
use locktopus_protocol::slot::key_slot;

use crate::plan::{Act, Count, End, Fault, Kind, Lock, Plan, ProcessPlan, Strategy, Wait};
use crate::slots::Slots;
use wrong::{aim_at, faults};

/// Names with braces, and names that are alike.
const NAMES: [&str; 5] = ["a", "{t}:x", "{t}:y", "b{z}", "a:b"];

/// Narrows what a schedule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Focus {
    /// Each lock is of one of these kinds.
    pub kinds: &'static [Kind],
    /// Whether one name is used as these kinds and as others.
    pub mixed: bool,
}

impl Plan {
    /// The schedule of a seed.
    #[must_use]
    pub fn draw(seed: u64) -> Self {
        Self::about(seed, None)
    }

    /// The schedule of a seed, narrowed to a focus.
    #[must_use]
    pub fn about(seed: u64, focus: Option<Focus>) -> Self {
        let mut rng = Rng::new(seed);
        let rng = &mut rng;
        let calm = rng.permille(200);
        let quorum = rng
            .permille(if focus.is_some() || calm { 0 } else { 150 })
            .then(|| if rng.permille(700) { 3 } else { 5 });
        let replicas = if quorum.is_some() { 0 } else { few(rng) };
        let shards = if quorum.is_none() && rng.permille(200) {
            3
        } else {
            1
        };
        let lease = if calm {
            6_000
        } else {
            *rng.pick(&[400, 800, 1_500, 3_000])
        };
        let safety = match rng.below(10) {
            _ if quorum.is_some() => SafetyMode::Plain,
            // Quarantine may refuse free locks for a while.
            _ if calm || focus.is_some() => SafetyMode::Plain,
            0..5 => SafetyMode::Plain,
            5..7 if replicas > 0 && shards == 1 => SafetyMode::Replicated {
                need: if rng.permille(500) {
                    ReplicaNeed::Majority
                } else {
                    ReplicaNeed::All
                },
                timeout: Duration::from_millis(150),
            },
            _ => SafetyMode::Quarantine {
                max_lease: Duration::from_millis(lease),
            },
        };
        let mut locks = locks(rng, quorum.is_some(), focus);
        // In a cluster a latch cannot have such a name.
        for lock in locks
            .iter_mut()
            .filter(|lock| shards > 1 && lock.name.contains('{'))
        {
            if lock.kind == Kind::Latch {
                lock.kind = Kind::Fair;
            }
        }
        let guarded = quorum.is_some() || safety != SafetyMode::Plain;
        let mut processes: Vec<_> = (0..rng.between(2, 4))
            .map(|_| process(rng, locks.len(), lease, guarded))
            .collect();
        if quorum.is_some() {
            processes.iter_mut().for_each(|process| process.keep = 0);
        }
        // Other libraries know nothing of safety modes.
        let alone = quorum.is_none() && shards == 1;
        if alone && safety == SafetyMode::Plain && rng.permille(300) {
            processes[0].neighbour = true;
        }
        let mut plan = Self {
            seed,
            safety,
            quorum,
            // Replicas of further shards are drawn later.
            replicas: [replicas].into_iter().chain(vec![0; shards - 1]).collect(),
            steady: calm,
            travel: *rng.pick(&[1, 2, 5, 10]),
            lease,
            locks,
            processes,
            faults: Vec::new(),
        };
        if calm {
            plan.calm_down();
        } else {
            plan.faults = faults(rng, &plan);
        }
        if shards > 1 {
            plan.spread_over_shards(focus.is_none());
        }
        plan.promote_again();
        plan
    }

    /// A schedule in which many tasks of a process ask at once, so the client sends their requests
    /// together. They want few locks or many.
    #[must_use]
    pub fn crowded(seed: u64) -> Self {
        let mut plan = Self::about(seed, None);
        let rng = &mut Rng::new(seed ^ 0xc20ed);
        plan.quorum = None;
        plan.replicas = vec![few(rng).min(1)];
        plan.safety = SafetyMode::Plain;
        let kinds = [
            Kind::Lock,
            Kind::Lock,
            Kind::Mutex,
            Kind::Fair,
            Kind::ReadWrite,
            Kind::Semaphore(2),
            Kind::Permits(2),
        ];
        plan.locks = (0..rng.between(3, 16))
            .map(|number| Lock {
                name: format!("crowd:{number}"),
                kind: *rng.pick(&kinds),
            })
            .collect();
        let count = plan.locks.len();
        plan.processes = (0..2)
            .map(|_| {
                let mut one = process(rng, count, plan.lease, false);
                one.tasks = (0..rng.between(8, 24))
                    .map(|_| {
                        let acts = 0..rng.between(1, 3);
                        let acts = acts.map(|_| act(rng, count, plan.lease, false));
                        acts.map(|act| Act {
                            pause: act.pause % 3,
                            hold: act.hold % 20,
                            ..act
                        })
                        .collect()
                    })
                    .collect();
                one
            })
            .collect();
        plan.faults = match plan.steady {
            true => Vec::new(),
            false => faults(rng, &plan),
        };
        if plan.steady {
            plan.calm_down();
        }
        plan
    }

    /// Adds a fault that only quarantine covers: a replaced primary is promoted again. It draws
    /// from a generator of its own, as `spread_over_shards` does.
    fn promote_again(&mut self) {
        let rng = &mut Rng::new(self.seed ^ 0x0e60c4);
        let quarantine = matches!(self.safety, SafetyMode::Quarantine { .. });
        if !quarantine || self.shards() > 1 || self.replicas[0] == 0 || !rng.permille(400) {
            return;
        }
        let at = self.lease + rng.below(2_500);
        // Long enough for a grant or an extension in between.
        let away = self.lease / 4 + rng.below(self.lease * 2);
        if rng.permille(500) {
            self.faults.retain(|(_, fault)| !fault.forgets());
        }
        self.faults.push((at, Fault::Return(0, away)));
        self.faults.sort_by_key(|(at, _)| *at);
    }

    /// Gives every shard of a cluster replicas and failovers, and adds other libraries. It draws
    /// from a generator of its own, so the rest of the schedule is the same as before this existed.
    fn spread_over_shards(&mut self, with_others: bool) {
        let rng = &mut Rng::new(self.seed ^ 0x54a2d5);
        self.replicas
            .iter_mut()
            .skip(1)
            .for_each(|replicas| *replicas = few(rng));
        let shards = 0..self.replicas.len();
        let shards: Vec<_> = shards.filter(|shard| self.replicas[*shard] > 0).collect();
        // As often as without a cluster. Not for script mutants, which our own processes must
        // notice.
        if with_others && self.safety == SafetyMode::Plain && rng.permille(300) {
            self.processes[0].neighbour = true;
        }
        if self.steady || shards.is_empty() {
            return;
        }
        let servers = self.servers() as u64;
        for (_, fault) in &mut self.faults {
            match fault {
                Fault::Kill(shard) | Fault::Orderly(shard) | Fault::Split(shard, _) => {
                    *shard = *rng.pick(&shards);
                }
                Fault::Restart(node, ..)
                | Fault::FlushScripts(node)
                | Fault::OutOfMemory(node, _)
                | Fault::LacksReplicas(node, _)
                | Fault::SetClock(node, _) => {
                    *node = usize::try_from(rng.below(servers)).unwrap_or(0);
                }
                _ => {}
            }
        }
        let at = self.faults.first().map_or(0, |(at, _)| *at) + rng.below(1_500);
        if self.guards() && rng.permille(500) {
            // Aims at a shard that has a lock to lose.
            let slots = Slots::new(self);
            let lock = rng.pick(&self.locks);
            let shard = slots.owner(key_slot(lock.name.as_bytes()));
            let mut faults = std::mem::take(&mut self.faults);
            aim_at(rng, self, shard, at, &mut faults);
            self.faults = faults;
        } else if rng.permille(500) {
            let (shard, long) = (*rng.pick(&shards), rng.below(self.lease * 2) + 50);
            let fault = match rng.below(6) {
                0..3 => Fault::Kill(shard),
                3 => Fault::Orderly(shard),
                4 => Fault::Split(shard, long),
                _ => Fault::Misplace(
                    usize::try_from(rng.below(self.processes.len() as u64)).unwrap_or(0),
                ),
            };
            for replica in self.replicas_of(shard) {
                if rng.permille(300) {
                    self.faults.push((at, Fault::Lag(replica, 700)));
                }
            }
            self.faults.push((at + rng.below(300), fault));
        }
        self.faults.sort_by_key(|(at, _)| *at);
    }

    /// Removes clock drift, evictions and long holds, so waiting for a free lock takes only a
    /// moment.
    fn calm_down(&mut self) {
        for process in &mut self.processes {
            process.drift = 0;
            for act in process.tasks.iter_mut().flatten() {
                act.hold %= 300;
                act.at_least = None;
                if matches!(act.end, End::Evict) {
                    act.end = End::Release;
                }
            }
        }
    }
}

/// A number of replicas, from 0 to 2.
fn few(rng: &mut Rng) -> usize {
    usize::try_from(rng.below(3)).unwrap_or(0)
}

fn locks(rng: &mut Rng, quorum: bool, focus: Option<Focus>) -> Vec<Lock> {
    let counted = u32::try_from(rng.between(1, 3)).unwrap_or(1);
    let kinds = [
        Kind::Lock,
        Kind::Lock,
        Kind::Fair,
        Kind::Mutex,
        Kind::SingleKey,
        Kind::RedisPy,
        Kind::ReadWrite,
        Kind::ReadWrite,
        Kind::Semaphore(counted),
        Kind::Permits(counted),
        Kind::Latch,
    ];
    // Usually each name has one kind. A second kind gets an error where servers can see it.
    let mixed = !quorum && focus.map_or_else(|| rng.permille(130), |focus| focus.mixed);
    let most = if rng.permille(600) && !mixed { 1 } else { 3 };
    let first = usize::try_from(rng.below(3)).unwrap_or(0);
    let mut locks: Vec<Lock> = Vec::new();
    for place in 0..most {
        let lock = Lock {
            name: NAMES[if mixed { first } else { first + place }].to_owned(),
            kind: match focus {
                _ if quorum => Kind::Mutex,
                // The second kind is another one, not the same one with another number.
                Some(focus) if focus.mixed && place == 1 => loop {
                    let kind = *rng.pick(&kinds);
                    let same = |it: &Kind| discriminant(it) == discriminant(&kind);
                    if !focus.kinds.iter().any(same) {
                        break kind;
                    }
                },
                Some(focus) => *rng.pick(focus.kinds),
                None => *rng.pick(&kinds),
            },
        };
        if !locks.contains(&lock) {
            locks.push(lock);
        }
    }
    locks
}

fn process(rng: &mut Rng, locks: usize, lease: u64, guarded: bool) -> ProcessPlan {
    let drift = if rng.permille(300) {
        rng.between(-4, 4)
    } else {
        0
    };
    let keep = *rng.pick(&[0, 0, lease / 10, lease / 3]);
    let turns = *rng.pick(&[64, 64, 4, 1]);
    let tasks = (0..rng.between(1, 3)).map(|_| {
        let acts = rng.between(1, 4);
        (0..acts).map(|_| act(rng, locks, lease, guarded)).collect()
    });
    ProcessPlan {
        drift,
        neighbour: false,
        keep: if turns > 1 { keep } else { 0 },
        turns,
        tasks: tasks.collect(),
    }
}

fn act(rng: &mut Rng, locks: usize, lease: u64, guarded: bool) -> Act {
    let any = |rng: &mut Rng| usize::try_from(rng.below(locks as u64)).unwrap_or(0);
    let wait = match rng.below(10) {
        0..6 => Wait::Forever,
        6 => Wait::AtMost(rng.below(150) + 1),
        7 => Wait::AtMost(rng.below(2_000) + 1),
        8 => Wait::Try,
        _ => Wait::Dropped(rng.below(300) + 1),
    };
    let end = match rng.below(40) {
        0..22 => End::Release,
        22..27 => End::Drop,
        27..31 => End::Extend,
        31 => End::Again,
        32 => End::Ticket,
        33 => End::Downgrade,
        34 => End::Inspect,
        35 => End::Write,
        36..38 => End::Count(*rng.pick(&[Count::Fewer, Count::Drain, Count::Delete])),
        _ => End::Evict,
    };
    let strategy = match rng.below(20) {
        0..11 => Strategy::HandOff,
        11..14 => Strategy::Confirm,
        14..17 => Strategy::Notify,
        _ => Strategy::Poll,
    };
    let fixed_lease = rng
        .permille(250)
        .then(|| (100 + rng.below(1_000)).min(lease));
    let longest = if rng.permille(500) { 30 } else { 600 };
    Act {
        pause: rng.below(longest),
        lock: any(rng),
        also: rng.permille(200).then(|| any(rng)),
        exclusive: rng.permille(500),
        wait,
        strategy,
        at_least: (fixed_lease.is_none() && rng.permille(60)).then(|| 1 + rng.below(300)),
        hold: if rng.permille(if guarded { 500 } else { 800 }) {
            rng.below(120)
        } else {
            rng.below(lease * 3)
        },
        fixed_lease,
        end,
    }
}
