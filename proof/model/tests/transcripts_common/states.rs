//! Courses that start from a constructed state instead of calls: holds, places, notes and deadlines
//! that end now, a unit sooner or later, or were noted before the clock was set back. One or two
//! calls meet it.

use locktopus_model::Rng;
use locktopus_model::transcripts::course::{Course, Step};
use locktopus_model::transcripts::play::REPLID;

use super::scenes::{KINDS, Kind, NATIVE, command, course, late};

const BEGIN: i64 = 1_760_000_000_000_000;
pub(super) const THEIRS: [&str; 2] = [
    "11111111-2222-4333-8444-555555555555:7",
    "11111111-2222-4333-8444-555555555555:8",
];
const TOKEN: &str = "redisson_lock_token:{it}";
pub(super) const WAITERS: &str = "locktopus_waiters:{it}";
const KIND: &str = "locktopus_kind:{it}";
const PUBLISH: [&str; 4] = ["PUBLISH", "PUBLISH", "SPUBLISH", "publish"];
/// Distances from a limit, in its unit.
const OFF: [i64; 5] = [-1, 0, 0, 1, 1_000];

/// So many courses of each kind.
pub(super) fn courses(of_each: u64, seed: u64) -> Vec<Course> {
    let mut rng = Rng::new(seed);
    let mut courses = Vec::new();
    for _ in 0..of_each {
        for kind in &KINDS {
            courses.push(State::new(kind, &mut rng).course());
        }
    }
    courses
}

/// The name in a number's scripts.
fn number_of(kind: &str) -> &str {
    match kind {
        "permit_semaphore" => "permits",
        "rate_limiter" => "rate",
        kind => kind,
    }
}

/// The state of the server, and the callers.
pub(super) struct State<'a> {
    pub(super) kind: &'static Kind,
    pub(super) rng: &'a mut Rng,
    pub(super) now: i64,
    pub(super) publish: &'static str,
    pub(super) steps: Vec<(Step, Vec<String>)>,
    owners: [String; 3],
    places: [&'static str; 3],
    leases: [&'static str; 3],
    tokens: [&'static str; 3],
    permits: [&'static str; 3],
    modes: [&'static str; 3],
    quarantined: bool,
    /// Which of them may hold it.
    holder: usize,
}

impl<'a> State<'a> {
    fn new(kind: &'static Kind, rng: &'a mut Rng) -> Self {
        let now = BEGIN
            + *rng.pick(&[
                0, 16, 1, 999, 500, 499, 501, 15_016, 999_984, 123_456, 8_000_000,
            ]);
        let number = !kind.number.is_empty();
        let mut three = |from: &[&'static str]| [*rng.pick(from), *rng.pick(from), *rng.pick(from)];
        let places = three(&["8", "80", "1000", "30000", "31000", "50000"]);
        let leases = three(&["1", "1000", "60000"]);
        let tokens = three(if number {
            &["0"]
        } else {
            &["0", "1", "1", "16"]
        });
        let permits = three(if number { &["1", "2", "3"] } else { &["1"] });
        let modes = three(kind.modes);
        let owners = ["a", "b", "c"].map(|name| match kind.number {
            "permit_semaphore" => format!("{}\0\0", name.repeat(14)),
            _ => {
                // The last byte of an owner tells whether it belongs to a fair lock.
                let last = if kind.modes == ["f"] { 1 } else { 2 };
                format!("9e1f5965-8da3-8c70-a705-d38899d8dba4:{name}{last}")
            }
        });
        let publish = *rng.pick(&PUBLISH);
        let quarantined = rng.permille(120);
        Self {
            kind,
            rng,
            now,
            publish,
            steps: Vec::new(),
            owners,
            places,
            leases,
            tokens,
            permits,
            modes,
            quarantined,
            holder: 0,
        }
    }

    fn course(mut self) -> Course {
        self.steps.push(late(self.now));
        self.listeners();
        if self.rng.permille(850) {
            self.hold();
        }
        match self.kind.modes {
            ["f"] => self.fair_line(),
            _ => self.line(),
        }
        self.token();
        if self.quarantined {
            self.record();
        }
        // A command may fail.
        if self.rng.permille(80) {
            let at = usize::try_from(self.rng.between(1, 12)).unwrap();
            let line = *self.rng.pick(&["NOPERM no", "WRONGTYPE no", "OOM no"]);
            self.steps
                .push((Step::Fault(at, line.to_owned()), Vec::new()));
        }
        self.call();
        if self.rng.permille(400) {
            self.now += *self
                .rng
                .pick(&[1, 16, 1_000, 2_000_000, 20_000, 3_001_000, 31_000_000]);
            self.call();
        }
        let advances = self.rng.permille(100);
        Course {
            advances,
            ..course(self.steps)
        }
    }

    pub(super) fn put(&mut self, words: &[&str]) {
        self.steps.push(command(words));
    }

    pub(super) fn listen(&mut self, channel: &str, count: i64) {
        let step = Step::Listen {
            sharded: self.publish == "SPUBLISH",
            channel: channel.as_bytes().to_vec(),
            count: usize::try_from(count).unwrap(),
        };
        self.steps.push((step, Vec::new()));
    }

    fn listeners(&mut self) {
        for name in ["a", "b", "c"] {
            if self.rng.permille(750) {
                self.listen(&format!("inbox:{{it}}:{name}"), 1);
            }
        }
        for channel in [self.kind.channel, NATIVE] {
            let count = self.rng.between(0, 2);
            if count > 0 {
                self.listen(channel, count);
            }
        }
    }

    fn owner(&mut self) -> String {
        match self.rng.below(10) {
            0 => THEIRS[0].to_owned(),
            1 => "somebody".to_owned(),
            _ => {
                self.holder = usize::try_from(self.rng.below(3)).unwrap();
                self.owners[self.holder].clone()
            }
        }
    }

    fn hold(&mut self) {
        let owner = self.owner();
        match (self.kind.number, self.kind.modes) {
            ("", ["m"]) => self.put(&["SET", "it", &owner]),
            ("", ["r", "w"]) => return self.hold_rw(),
            ("", _) => self.put(&["HSET", "it", &owner, "1"]),
            _ => return self.hold_permits(),
        }
        if self.rng.permille(900) {
            let lease = *self.rng.pick(&["1", "500", "20000"]);
            self.put(&["PEXPIRE", "it", lease]);
        }
    }

    fn hold_rw(&mut self) {
        let longest = self.rng.between(1, 3) * 10;
        if self.rng.permille(300) {
            let writer = format!("{}:write", self.owner());
            self.put(&["HSET", "it", "mode", "write", &writer, "1"]);
            if self.rng.permille(400) {
                let reader = self.owner();
                self.reader(&reader, longest);
            }
        } else {
            self.put(&["HSET", "it", "mode", "read"]);
            for _ in 0..self.rng.between(1, 3) {
                let reader = self.owner();
                self.reader(&reader, longest);
            }
        }
        if self.rng.permille(850) {
            let lease = longest + *self.rng.pick(&[0, 0, 1, 5, 6, -1, 100]);
            self.put(&["PEXPIRE", "it", &lease.to_string()]);
        }
    }

    fn reader(&mut self, owner: &str, longest: i64) {
        let holds = *self.rng.pick(&["1", "1", "1", "2", "3", "x"]);
        self.put(&["HSET", "it", owner, holds]);
        for hold in 1..=2 {
            if self.rng.permille(850) {
                let key = format!("{{it}}:{owner}:rwlock_timeout:{hold}");
                let left = longest + *self.rng.pick(&[0, 1, -1, -4, -5, -6, -20, 30]);
                if left > 0 && self.rng.permille(900) {
                    self.put(&["SET", &key, "1", "PX", &left.to_string()]);
                } else {
                    self.put(&["SET", &key, "1"]);
                }
            }
            if holds == "1" {
                break;
            }
        }
    }

    fn hold_permits(&mut self) {
        let number = *self.rng.pick(&["0", "0", "1", "2", "3", "5", "-1"]);
        if self.rng.permille(900) {
            self.put(&["SET", "it", number]);
            if self.rng.permille(200) {
                self.put(&["PEXPIRE", "it", "30000"]);
            }
        }
        if self.rng.permille(850) {
            let other = [
                "semaphore",
                "permit_semaphore",
                "rate_limiter 2 500",
                "latch",
            ];
            let kind = match self.rng.permille(900) {
                true => self.kind.number,
                false => *self.rng.pick(&other),
            };
            self.put(&["SET", KIND, kind]);
        }
        for _ in 0..self.rng.between(0, 3) {
            let end = (self.now / 1_000
                + *self.rng.pick(&[-1_000, -1, 0, 1, 2, 20, 1_000, 30_000]))
            .to_string();
            let end = match self.rng.below(25) {
                0 => "922337203685477",
                1 => "+inf",
                2 => "922337203685476",
                _ => &end,
            };
            let owner = self.owner();
            let permits = *self.rng.pick(&["1", "2", "3"]);
            let holder = match self.kind.number {
                number if number != "permit_semaphore" => format!("{permits} {owner}"),
                _ if self.rng.permille(300) => owner.replace("\0\0", "\0\u{1}"),
                _ => owner,
            };
            self.put(&["ZADD", self.kind.keys[4], end, &holder]);
        }
        if self.rng.permille(80) {
            let end = (self.now / 1_000 + *self.rng.pick(&[-1, 0, 1, 500])).to_string();
            self.put(&["ZADD", self.kind.keys[6], &end, "1 somebody"]);
        }
    }

    /// The member of a waiter in the line.
    fn member(&mut self, who: usize) -> String {
        let other = ["x", "m", "f", "r", "w", "s", "p", "t"];
        let mode = match self.rng.permille(950) {
            true => self.modes[who],
            false => *self.rng.pick(&other),
        };
        let owner = &self.owners[who];
        let inbox = ["a", "b", "c"][who];
        format!(
            "{} {} {} {} {mode} {} {owner} inbox:{{it}}:{inbox}",
            self.places[who],
            self.leases[who],
            self.tokens[who],
            self.permits[who],
            owner.len(),
        )
    }

    fn line(&mut self) {
        for who in 0..3 {
            if self.rng.permille(500) {
                continue;
            }
            let member = match self.rng.permille(970) {
                true => self.member(who),
                false => "spoilt".to_owned(),
            };
            let place: i64 = self.places[who].parse().unwrap();
            let limit = *self.rng.pick(&[
                0,
                -10,
                -10,
                -place * 1_000,
                -place * 125,
                place * 125,
                7_000_000,
            ]);
            let ticket = self.now + limit + *self.rng.pick(&OFF) + i64::try_from(who).unwrap();
            self.put(&["ZADD", self.kind.keys[2], &ticket.to_string(), &member]);
            if self.rng.permille(400) {
                let note = self.now / 1_000 + *self.rng.pick(&[-1, 0, 1, 10, 1_000]);
                let note = if self.rng.permille(950) {
                    note.to_string()
                } else {
                    "x".to_owned()
                };
                let owner = self.owners[who].clone();
                self.put(&["HSET", WAITERS, &owner, &note]);
            }
        }
        if self.rng.permille(250) {
            let until = self.now / 1_000 + *self.rng.pick(&[-1, 0, 1, 19, 20, 21, 10]);
            self.put(&["HSET", WAITERS, "!open", &until.to_string()]);
        }
        if self.rng.permille(150) {
            let note = format!("{} inbox:{{it}}:a", self.owners[0]);
            let note = if self.rng.permille(850) {
                &note
            } else {
                "spoilt"
            };
            self.put(&["HSET", WAITERS, "!recall", note]);
        }
        for key in [self.kind.keys[2], WAITERS] {
            if self.rng.permille(600) {
                let lease = *self
                    .rng
                    .pick(&["70000", "1", "60000", "59999", "60001", "100000", "100001"]);
                self.put(&["PEXPIRE", key, lease]);
            }
        }
    }

    fn token(&mut self) {
        let last = match self.rng.below(12) {
            0 => "x".to_owned(),
            1 => (9_007_199_254_740_992_i64 - self.rng.between(0, 18)).to_string(),
            2..=4 => return,
            _ => (self.now
                + *self
                    .rng
                    .pick(&[-17, -16, -15, -2, -1, 0, 1, -1_000_000, 1_000]))
            .to_string(),
        };
        self.put(&["SET", TOKEN, &last]);
    }

    fn record(&mut self) {
        let history = if self.rng.permille(700) {
            REPLID
        } else {
            "0123456789"
        };
        let until = self.now / 1_000 + *self.rng.pick(&[-1, 0, 1, 100, 200_000]);
        let until = if self.rng.permille(900) {
            until.to_string()
        } else {
            "x".to_owned()
        };
        let lease = *self.rng.pick(&["200000", "200000", "200000", "200001"]);
        let words = [
            "HSET",
            "locktopus_history",
            "history",
            history,
            "until",
            &until,
            "lease",
            lease,
        ];
        match self.rng.below(8) {
            0 => {}
            1 => self.put(&words[..6]),
            _ => self.put(&words),
        }
    }

    fn call(&mut self) {
        let what = self.kind.acquire.trim_end_matches("_acquire");
        let who = usize::try_from(self.rng.below(3)).unwrap();
        let number = !self.kind.number.is_empty();
        let keys = self.kind.keys;
        match self.rng.below(if number { 12 } else { 9 }) {
            0..=3 => self.acquire(who),
            4 => self.release(who),
            5..=6 => self.release(self.holder),
            7 => {
                let tokens = if number { "0" } else { "1" };
                let publish = if self.rng.permille(800) {
                    self.publish
                } else {
                    ""
                };
                let mut words = vec![publish, self.kind.channel, "86400000", tokens];
                if what == "notifying_mutex" {
                    words.extend(["", "", "", "word", "list"]);
                }
                self.run(&format!("{what}_evict"), keys, &words);
            }
            8 => self.run(&format!("{what}_inspect"), keys, &[]),
            9 => {
                self.run(&format!("{}_read", number_of(what)), keys, &[]);
            }
            _ => {
                let action = *self.rng.pick(&["init", "resize", "add", "drain", "delete"]);
                let count = *self.rng.pick(&["0", "1", "2", "-1", "-2"]);
                let words = [
                    action,
                    count,
                    self.publish,
                    self.kind.channel,
                    "120000",
                    "86400000",
                    *self.rng.pick(&["20000", "500"]),
                ];
                let keys = [keys, &["locktopus_done:{it}:1"]].concat();
                self.run(&format!("{}_counter", number_of(what)), &keys, &words);
            }
        }
    }

    fn acquire(&mut self, who: usize) {
        let late = match self.rng.below(10) {
            0 => (self.now + *self.rng.pick(&[-1, 0, 1])).to_string(),
            _ => "0".to_owned(),
        };
        let floor = match self.rng.below(5) {
            0 => (self.now + *self.rng.pick(&[-1, 0, 1, 16, 1_000])).to_string(),
            _ => "0".to_owned(),
        };
        let place = if self.rng.permille(750) {
            self.places[who]
        } else {
            ""
        };
        let inbox = format!("inbox:{{it}}:{}", ["a", "b", "c"][who]);
        let recall = if self.rng.permille(150) { "1" } else { "" };
        let newcomer = if self.rng.permille(400) { "1" } else { "" };
        let owner = self.owners[who].clone();
        let words = [
            owner.as_str(),
            self.leases[who],
            "86400000",
            &late,
            self.modes[who],
            self.permits[who],
            self.tokens[who],
            &floor,
            self.publish,
            place,
            &inbox,
            self.kind.channel,
            recall,
            newcomer,
        ];
        self.run(self.kind.acquire, self.kind.keys, &words);
    }

    fn release(&mut self, who: usize) {
        let owner = self.owners[who].clone();
        let inbox = format!("inbox:{{it}}:{}", ["a", "b", "c"][who]);
        let waits = *self.rng.pick(&["", "1"]);
        let publish = if self.rng.permille(950) {
            self.publish
        } else {
            ""
        };
        let notifies = self.kind.acquire.starts_with("notifying");
        let (eighth, ninth) = if notifies {
            ("word", "list")
        } else {
            (waits, "")
        };
        let mut words = vec![
            owner.as_str(),
            self.modes[who],
            self.permits[who],
            publish,
            self.kind.channel,
            "86400000",
            NATIVE,
            eighth,
            ninth,
        ];
        if self.rng.permille(500) {
            words.extend([self.places[who], self.leases[who], self.tokens[who], &inbox]);
        }
        self.run(self.kind.release, self.kind.keys, &words);
    }

    fn run(&mut self, script: &str, keys: &[&str], arguments: &[&str]) {
        let mut keys: Vec<_> = keys.iter().map(|key| key.as_bytes().to_vec()).collect();
        let mut arguments: Vec<_> = arguments
            .iter()
            .map(|word| word.as_bytes().to_vec())
            .collect();
        let guarded = ["_acquire", "_release", "_evict", "_counter"];
        let mut script = script.to_owned();
        if self.quarantined && guarded.iter().any(|end| script.ends_with(end)) {
            script = format!("quarantined_{script}");
            keys.push(b"locktopus_history".to_vec());
            let age = *self.rng.pick(&[0, 1, 199_999, 200_000, 200_001]);
            let seen = if self.rng.permille(500) {
                format!("{REPLID}={age}")
            } else {
                String::new()
            };
            arguments.extend([b"200000".to_vec(), seen.into_bytes()]);
        }
        let step = Step::Call {
            script,
            clock: self.now,
            keys,
            arguments,
        };
        self.steps.push((step, Vec::new()));
    }

    pub(super) fn places(&self) -> ([String; 3], [&'static str; 3]) {
        (self.owners.clone(), self.places)
    }
}
