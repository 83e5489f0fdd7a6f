//! Turns records into attempts, and rejects impossible ones.

mod lifecycle;
mod tenure;

use std::collections::{HashMap, HashSet};

use crate::attempt::{Answer, Attempt, Held, Tenure};
use crate::clock::ClockKind;
use crate::event::{AttemptId, Event, Mode, Record, Rules};
use crate::journal::FORMAT;
use crate::malformed::Malformed;
use crate::reader::History;
use crate::stalls::Stalls;

/// A history by locks and attempts.
#[derive(Debug, Default)]
pub(super) struct Assembled {
    pub(super) locks: Vec<Lock>,
    /// In the order of their execution.
    pub(super) faults: Vec<Fault>,
    pub(super) malformed: Vec<Malformed>,
    pub(super) stalls: Stalls,
    pub(super) workers: usize,
}

/// Everything about one lock.
#[derive(Debug, Default)]
pub(super) struct Lock {
    pub(super) name: String,
    pub(super) rules: Rules,
    pub(super) attempts: Vec<Attempt>,
    pub(super) tenures: Vec<Tenure>,
    declared: bool,
    /// Whether it grants permits; unknown before the first grant.
    permits: Option<bool>,
}

/// A fault that a test caused.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) at: u64,
    pub(super) verb: String,
    pub(super) target: String,
}

impl Lock {
    /// Grants with their attempts.
    pub(super) fn grants(&self) -> impl Iterator<Item = (&Attempt, &Held)> {
        self.attempts
            .iter()
            .filter_map(|attempt| Some((attempt, attempt.held()?)))
    }
}

/// Reads all records of a history.
pub(super) fn assemble(history: &History) -> Assembled {
    let mut assembler = Assembler::default();
    for record in history.records() {
        if let Err(malformed) = assembler.take(record) {
            assembler.out.malformed.push(malformed);
        }
    }
    assembler.finish()
}

#[derive(Default)]
struct Assembler {
    out: Assembled,
    workers: HashMap<u32, Worker>,
    clock: Option<ClockKind>,
    /// The position of each attempt: the index of its lock, and its index among the lock's
    /// attempts.
    places: HashMap<AttemptId, (usize, usize)>,
    locks: HashMap<String, usize>,
    holders: HashMap<(usize, u64), u32>,
    next_holder: u32,
}

#[derive(Default)]
struct Worker {
    opened: bool,
    closed: bool,
    last: u64,
}

impl Assembler {
    fn take(&mut self, record: &Record) -> Result<(), Malformed> {
        let worker = self.workers.entry(record.worker).or_default();
        if worker.closed {
            return Err(Malformed::AfterClosed {
                worker: record.worker,
                event: record.event.what(),
                at: record.at,
            });
        }
        worker.last = record.at;
        match &record.event {
            Event::Opened { format, clock } => self.open(record.worker, *format, *clock),
            Event::Closed => {
                worker.closed = true;
                Ok(())
            }
            Event::Declared { lock, rules } => self.declare(record.worker, lock, *rules),
            Event::Fault { verb, target } => {
                self.out.faults.push(Fault {
                    at: record.at,
                    verb: verb.clone(),
                    target: target.clone(),
                });
                Ok(())
            }
            Event::Stalled { since, everybody } => {
                let worker = (!everybody).then_some(record.worker);
                self.out.stalls.add(worker, *since, record.at);
                Ok(())
            }
            Event::Started {
                attempt,
                lock,
                holder,
            } => {
                let id = AttemptId {
                    worker: record.worker,
                    attempt: *attempt,
                };
                self.start(id, record.at, lock, *holder)
            }
            event => self.change(record, event),
        }
    }

    fn open(&mut self, worker: u32, format: u32, clock: ClockKind) -> Result<(), Malformed> {
        let opened = self.workers.entry(worker).or_default();
        if std::mem::replace(&mut opened.opened, true) {
            return Err(Malformed::OpenedTwice { worker });
        }
        if format != FORMAT {
            return Err(Malformed::UnknownFormat { worker, format });
        }
        if *self.clock.get_or_insert(clock) != clock {
            return Err(Malformed::ClocksDiffer { worker, clock });
        }
        Ok(())
    }

    fn declare(&mut self, worker: u32, name: &str, rules: Rules) -> Result<(), Malformed> {
        let at = self.lock(name);
        let lock = &mut self.out.locks[at];
        if std::mem::replace(&mut lock.declared, true) && lock.rules != rules {
            return Err(Malformed::RulesDiffer {
                lock: name.to_owned(),
                worker,
            });
        }
        lock.rules = rules;
        Ok(())
    }

    fn start(
        &mut self,
        id: AttemptId,
        at: u64,
        name: &str,
        holder: Option<u64>,
    ) -> Result<(), Malformed> {
        if self.places.contains_key(&id) {
            return Err(Malformed::StartedTwice { attempt: id });
        }
        let lock = self.lock(name);
        let fresh = self.next_holder;
        let number = match holder {
            Some(stated) => *self.holders.entry((lock, stated)).or_insert(fresh),
            None => fresh,
        };
        if number == fresh {
            self.next_holder += 1;
        }
        let attempts = &mut self.out.locks[lock].attempts;
        self.places.insert(id, (lock, attempts.len()));
        attempts.push(Attempt {
            id,
            holder: number,
            shares_holder: holder.is_some(),
            started: at,
            enqueued: None,
            answer: Answer::Pending,
            alive_until: at,
            cut_off: true,
        });
        Ok(())
    }

    fn change(&mut self, record: &Record, event: &Event) -> Result<(), Malformed> {
        let id = AttemptId {
            worker: record.worker,
            attempt: event.attempt().unwrap_or_default(),
        };
        let Some(&(lock, at)) = self.places.get(&id) else {
            return Err(Malformed::NotStarted {
                attempt: id,
                event: event.what(),
            });
        };
        let lock = &mut self.out.locks[lock];
        if let Event::Granted { grant, .. } = event {
            lock.check_mode(id, grant.mode)?;
        }
        lock.attempts[at].apply(record.at, event)
    }

    fn lock(&mut self, name: &str) -> usize {
        if let Some(&at) = self.locks.get(name) {
            return at;
        }
        let at = self.out.locks.len();
        self.locks.insert(name.to_owned(), at);
        self.out.locks.push(Lock {
            name: name.to_owned(),
            ..Lock::default()
        });
        at
    }

    fn finish(mut self) -> Assembled {
        let mut orders = HashSet::new();
        for lock in &mut self.out.locks {
            if lock.permits == Some(true) && lock.rules.permits.is_none() {
                self.out.malformed.push(Malformed::NoLimit {
                    lock: lock.name.clone(),
                });
            }
            for attempt in &mut lock.attempts {
                if let Some(worker) = self.workers.get(&attempt.id.worker) {
                    attempt.alive_until = worker.last;
                    attempt.cut_off = !worker.closed;
                    if worker.closed {
                        self.out.malformed.extend(attempt.unfinished());
                    }
                }
                self.out
                    .malformed
                    .extend(attempt.repeated_orders(&mut orders));
            }
            orders.clear();
            tenure::assign(lock);
        }
        self.out.stalls.finish();
        self.out.workers = self.workers.len();
        self.out
    }
}

impl Lock {
    fn check_mode(&mut self, attempt: AttemptId, mode: Mode) -> Result<(), Malformed> {
        if mode == Mode::Permits(0) {
            return Err(Malformed::NoPermits { attempt });
        }
        let permits = matches!(mode, Mode::Permits(_));
        if *self.permits.get_or_insert(permits) == permits {
            Ok(())
        } else {
            Err(Malformed::MixedModes {
                lock: self.name.clone(),
                attempt,
            })
        }
    }
}
