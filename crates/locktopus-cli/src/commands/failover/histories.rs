//! Records the workers' history in pieces, because a watch may last for days and is judged as it
//! runs.
//!
//! Each piece is judged together with the one before, so overlaps across the boundary are found.
//! Findings within the earlier piece alone are subtracted, so each counts once. A worker moves on
//! to the next piece between two attempts. A piece ends when no worker has an attempt in it. The
//! next but one begins after that.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use locktopus_history::{
    Checker, History, Options, Record, RecordError, Recorder, Verdict, WorkerLog,
};

/// More than there are workers. Each gets its own number in each piece, as histories require.
const NUMBERS: u32 = 1 << 12;

/// The worker that wrote this record.
pub(super) fn worker_of(record: &Record) -> usize {
    (record.worker % NUMBERS) as usize
}

/// A part of the history.
#[derive(Debug)]
pub(super) struct Piece {
    number: u32,
    recorder: Recorder,
    pub(super) began_ns: u64,
    /// The names that were granted in it.
    granted: Mutex<BTreeSet<usize>>,
}

impl Piece {
    fn new(number: u32) -> Self {
        let recorder = Recorder::in_memory();
        Self {
            number,
            began_ns: recorder.clock().now_ns(),
            recorder,
            granted: Mutex::default(),
        }
    }

    pub(super) fn worker(&self, worker: usize) -> WorkerLog {
        let worker = u32::try_from(worker).unwrap_or(NUMBERS) % NUMBERS;
        self.recorder
            .worker(self.number.wrapping_mul(NUMBERS).wrapping_add(worker))
    }

    pub(super) fn granted(&self, name: usize) {
        locked(&self.granted).insert(name);
    }

    /// Closes the piece. All workers have left it.
    fn records(&self) -> Result<Vec<Record>, RecordError> {
        self.recorder.close()?;
        let history = self.recorder.history().unwrap_or_default();
        Ok(history.records().to_vec())
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells workers which piece to write to.
#[derive(Debug)]
pub(super) struct Book {
    current: Mutex<Arc<Piece>>,
}

impl Book {
    /// The current piece. Each clone stands for an attempt in it.
    pub(super) fn current(&self) -> Arc<Piece> {
        Arc::clone(&locked(&self.current))
    }
}

/// All pieces.
#[derive(Debug)]
pub(super) struct Pieces {
    book: Arc<Book>,
    names: usize,
    before: Vec<Record>,
    before_began_ns: u64,
    ending: Option<Ending>,
}

/// A piece that takes no new attempts.
#[derive(Debug)]
struct Ending {
    piece: Arc<Piece>,
    /// When it was replaced.
    since_ns: u64,
    /// When it was first seen without attempts.
    idle_ns: Option<u64>,
}

/// Two pieces to judge together.
#[derive(Debug)]
pub(super) struct Part {
    before: Vec<Record>,
    now: Vec<Record>,
    pub(super) began_ns: u64,
    /// It includes all events before this time.
    pub(super) ended_ns: u64,
}

/// The verdicts on both pieces and on the first alone.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) before: Verdict,
    pub(super) both: Verdict,
    /// Only the names that are held briefly. Those held for long go without grants normally.
    pub(super) brief: Verdict,
}

impl Part {
    pub(super) fn judge(
        &self,
        faults: &[Record],
        exclusive: bool,
        is_brief: impl Fn(usize) -> bool,
    ) -> Judged {
        let options = Options {
            exclusive,
            ..Options::default()
        };
        let checker = Checker::new().options(options);
        let check = |records: Vec<Record>| {
            let records = records.into_iter().chain(faults.iter().cloned());
            checker.check(&History::from_records(records.collect()))
        };
        let both = || self.before.iter().chain(&self.now);
        Judged {
            before: check(self.before.clone()),
            brief: check(
                both()
                    .filter(|one| is_brief(worker_of(one)))
                    .cloned()
                    .collect(),
            ),
            both: check(both().cloned().collect()),
        }
    }
}

impl Pieces {
    pub(super) fn new(names: usize) -> Self {
        let first = Arc::new(Piece::new(0));
        Self {
            names,
            before: Vec::new(),
            before_began_ns: first.began_ns,
            book: Arc::new(Book {
                current: Mutex::new(first),
            }),
            ending: None,
        }
    }

    pub(super) fn book(&self) -> Arc<Book> {
        Arc::clone(&self.book)
    }

    /// Starts a new piece if the current one began before `by_ns` and has a grant, and so a last
    /// token, of every name.
    pub(super) fn turn(&mut self, by_ns: u64, now_ns: u64) {
        let mut current = locked(&self.book.current);
        let full = locked(&current.granted).len() == self.names;
        if self.ending.is_none() && current.began_ns < by_ns && full {
            let next = Arc::new(Piece::new(current.number + 1));
            self.ending = Some(Ending {
                piece: std::mem::replace(&mut current, next),
                since_ns: now_ns,
                idle_ns: None,
            });
        }
    }

    /// Returns the last two pieces, once, if the servers were polled after the last attempt ended.
    pub(super) fn ended(
        &mut self,
        asked_ns: u64,
        now_ns: u64,
    ) -> Result<Option<Part>, RecordError> {
        let Some(ending) = &mut self.ending else {
            return Ok(None);
        };
        if Arc::strong_count(&ending.piece) > 1 {
            return Ok(None);
        }
        if asked_ns <= *ending.idle_ns.get_or_insert(now_ns) {
            return Ok(None);
        }
        let (now, ended_ns) = (ending.piece.records()?, ending.since_ns);
        let began_ns = std::mem::replace(&mut self.before_began_ns, ending.piece.began_ns);
        self.ending = None;
        let before = std::mem::replace(&mut self.before, now.clone());
        Ok(Some(Part {
            before,
            now,
            began_ns,
            ended_ns,
        }))
    }

    /// Returns everything not yet judged. All workers have finished.
    pub(super) fn rest(self) -> Result<Part, RecordError> {
        let mut now = Vec::new();
        let ending = self.ending.map(|ending| ending.piece);
        for piece in ending.into_iter().chain([self.book.current()]) {
            now.extend(piece.records()?);
        }
        Ok(Part {
            before: self.before,
            now,
            began_ns: self.before_began_ns,
            ended_ns: u64::MAX,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use locktopus_history::{Grant, Mode};

    use super::*;

    /// A worker that is granted the lock and never releases it.
    fn grant(book: &Book, worker: usize, token: u64) {
        let piece = book.current();
        let attempt = piece.worker(worker).start("a").unwrap();
        let clock = piece.recorder.clock();
        let grant = Grant {
            token: Some(token),
            valid_until: clock.after(Duration::from_secs(60)),
            mode: Mode::Exclusive,
            safety: "plain".to_owned(),
        };
        attempt.granted(grant).unwrap();
        piece.granted(0);
    }

    #[test]
    fn what_overlaps_across_pieces_is_seen_once() {
        let mut pieces = Pieces::new(1);
        let book = pieces.book();
        grant(&book, 1, 1);
        pieces.turn(u64::MAX, 0);
        grant(&book, 2, 2);
        let first = pieces.ended(1, 0).unwrap().unwrap();
        assert!(
            first
                .judge(&[], true, |_| true)
                .both
                .violations()
                .is_empty()
        );
        pieces.turn(u64::MAX, 0);
        let second = pieces
            .ended(1, 0)
            .unwrap()
            .unwrap()
            .judge(&[], true, |_| true);
        assert_eq!(second.both.validity.count - second.before.validity.count, 1);
        let rest = pieces.rest().unwrap().judge(&[], true, |_| true);
        assert_eq!(rest.both.validity.count, rest.before.validity.count);
    }

    #[test]
    fn a_piece_in_which_somebody_works_is_not_judged() {
        let mut pieces = Pieces::new(1);
        let book = pieces.book();
        grant(&book, 1, 1);
        let working = book.current();
        pieces.turn(u64::MAX, 0);
        assert!(pieces.ended(10, 5).unwrap().is_none());
        drop(working);
        assert!(pieces.ended(10, 10).unwrap().is_none(), "not asked since");
        assert!(pieces.ended(11, 11).unwrap().is_some());
    }
}
