//! Histories made by hand: lives of attempts, in nanoseconds.

use locktopus_history::{
    AttemptId, Checker, Event, FailReason, Grant, History, Mode, Options, Outcome, Property,
    Record, ReleaseOutcome, Rules, Verdict, Write, WriteOutcome,
};

/// The records of one attempt.
pub(crate) struct Life {
    pub(crate) worker: u32,
    pub(crate) attempt: u64,
    lock: String,
    holder: Option<u64>,
    mode: Mode,
    records: Vec<Record>,
}

/// The first attempt of a worker, for the exclusive lock "a".
pub(crate) fn life(worker: u32) -> Life {
    Life {
        worker,
        attempt: 0,
        lock: "a".to_owned(),
        holder: None,
        mode: Mode::Exclusive,
        records: Vec::new(),
    }
}

impl Life {
    pub(crate) fn id(&self) -> AttemptId {
        AttemptId {
            worker: self.worker,
            attempt: self.attempt,
        }
    }

    pub(crate) fn attempt(mut self, attempt: u64) -> Self {
        self.attempt = attempt;
        self
    }

    pub(crate) fn lock(mut self, lock: &str) -> Self {
        lock.clone_into(&mut self.lock);
        self
    }

    pub(crate) fn holder(mut self, holder: u64) -> Self {
        self.holder = Some(holder);
        self
    }

    pub(crate) fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    pub(crate) fn permits(self, permits: u32) -> Self {
        self.mode(Mode::Permits(permits))
    }

    pub(crate) fn asks(self, at: u64) -> Self {
        let started = Event::Started {
            attempt: self.attempt,
            lock: self.lock.clone(),
            holder: self.holder,
        };
        self.put(at, started)
    }

    pub(crate) fn queued(self, at: u64) -> Self {
        let attempt = self.attempt;
        self.put(at, Event::Enqueued { attempt, by: at })
    }

    pub(crate) fn gets(self, at: u64, valid_until: u64, token: impl Into<Option<u64>>) -> Self {
        let (attempt, mode) = (self.attempt, self.mode);
        let grant = Grant {
            token: token.into(),
            valid_until,
            mode,
            safety: "plain".to_owned(),
        };
        self.put(at, Event::Granted { attempt, grant })
    }

    /// Asks at the beginning, and gets the lock.
    pub(crate) fn got(self, at: u64, valid_until: u64, token: impl Into<Option<u64>>) -> Self {
        self.asks(0).gets(at, valid_until, token)
    }

    pub(crate) fn fails(self, at: u64, waited_until: Option<u64>) -> Self {
        let failed = Event::Failed {
            attempt: self.attempt,
            reason: FailReason::Timeout,
            waited_until,
        };
        self.put(at, failed)
    }

    pub(crate) fn enters(self, at: u64) -> Self {
        let attempt = self.attempt;
        self.put(at, Event::UseStarted { attempt })
    }

    pub(crate) fn leaves(self, at: u64) -> Self {
        let attempt = self.attempt;
        self.put(at, Event::UseEnded { attempt })
    }

    pub(crate) fn uses(self, from: u64, until: u64) -> Self {
        self.enters(from).leaves(until)
    }

    pub(crate) fn writes(self, issued: u64, at: u64, token: u64, outcome: WriteOutcome) -> Self {
        self.writes_nth(issued, at, token, outcome, None)
    }

    pub(crate) fn writes_nth(
        self,
        issued: u64,
        at: u64,
        token: u64,
        outcome: WriteOutcome,
        order: impl Into<Option<u64>>,
    ) -> Self {
        let write = Write {
            resource: "r".to_owned(),
            token,
            issued,
            outcome,
            order: order.into(),
        };
        let attempt = self.attempt;
        self.put(at, Event::Wrote { attempt, write })
    }

    pub(crate) fn extends(self, at: u64, valid_until: u64) -> Self {
        let attempt = self.attempt;
        let event = Event::Extended {
            attempt,
            valid_until,
        };
        self.put(at, event)
    }

    pub(crate) fn observes(self, at: u64, valid_until: u64) -> Self {
        let attempt = self.attempt;
        let event = Event::Observed {
            attempt,
            valid_until,
        };
        self.put(at, event)
    }

    pub(crate) fn loses(self, at: u64, valid_until: u64) -> Self {
        let lost = Event::Lost {
            attempt: self.attempt,
            cause: "expired".to_owned(),
            valid_until,
        };
        self.put(at, lost)
    }

    pub(crate) fn begins_release(self, at: u64) -> Self {
        let attempt = self.attempt;
        self.put(at, Event::ReleaseStarted { attempt })
    }

    pub(crate) fn ends_release(self, at: u64) -> Self {
        let attempt = self.attempt;
        let outcome = ReleaseOutcome::Ok;
        self.put(at, Event::ReleaseEnded { attempt, outcome })
    }

    pub(crate) fn releases(self, from: u64, until: u64) -> Self {
        self.begins_release(from).ends_release(until)
    }

    pub(crate) fn closes(self, at: u64) -> Self {
        self.put(at, Event::Closed)
    }

    /// Any other event of its worker.
    pub(crate) fn put(mut self, at: u64, event: Event) -> Self {
        self.records.push(Record {
            at,
            worker: self.worker,
            event,
        });
        self
    }
}

/// The rules of "a", by worker 0.
pub(crate) fn rules(permits: Option<u32>, fair: bool) -> Life {
    let rules = Rules { permits, fair };
    let lock = "a".to_owned();
    life(0).put(0, Event::Declared { lock, rules })
}

pub(crate) fn fault(at: u64, verb: &str) -> Life {
    let (verb, target) = (verb.to_owned(), "node-1".to_owned());
    life(0).put(at, Event::Fault { verb, target })
}

/// The machine did not run this worker, or one that all others waited for.
pub(crate) fn stall(worker: u32, since: u64, until: u64, everybody: bool) -> Life {
    life(worker).put(until, Event::Stalled { since, everybody })
}

pub(crate) fn history(lives: impl IntoIterator<Item = Life>) -> History {
    let records = lives.into_iter().flat_map(|life| life.records);
    History::from_records(records.collect())
}

pub(crate) fn check(lives: impl IntoIterator<Item = Life>) -> Verdict {
    check_with(strict(), lives)
}

pub(crate) fn check_with(options: Options, lives: impl IntoIterator<Item = Life>) -> Verdict {
    Checker::new().options(options).check(&history(lives))
}

/// Times in the histories are some nanoseconds, so no tolerance is allowed.
pub(crate) fn strict() -> Options {
    Options {
        reaction: std::time::Duration::ZERO,
        reply_slack: std::time::Duration::from_nanos(5),
        retry_pause: std::time::Duration::from_nanos(5),
        ..Options::default()
    }
}

/// The failed properties, and how often each failed.
pub(crate) fn failed(verdict: &Verdict) -> Vec<(Property, u64)> {
    let failed = verdict
        .judgements
        .iter()
        .filter(|judgement| judgement.outcome == Outcome::Failed);
    failed.map(|one| (one.property, one.violations)).collect()
}

#[track_caller]
pub(crate) fn assert_failed(verdict: &Verdict, expected: &[(Property, u64)]) {
    assert_eq!(failed(verdict), expected, "{verdict}");
}

/// Random-looking numbers that are the same each time.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit
    }

    pub(crate) fn between(&mut self, from: u64, until: u64) -> u64 {
        from + self.below(until - from + 1)
    }

    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}
