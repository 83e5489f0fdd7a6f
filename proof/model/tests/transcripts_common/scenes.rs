//! Planned courses: a holder, two waiters and a late one. Random requests reach these situations
//! too seldom: a release that serves others, a lease that expired with waiters behind it, eight
//! locks extended at once.

use locktopus_model::Rng;
use locktopus_model::transcripts::course::{Course, Step};

/// The scripts and keys of a kind.
pub(super) struct Kind {
    pub(super) acquire: &'static str,
    pub(super) release: &'static str,
    pub(super) modes: &'static [&'static str],
    pub(super) keys: &'static [&'static str],
    pub(super) channel: &'static str,
    /// The value that tells the kind of a number; empty for other kinds.
    pub(super) number: &'static str,
}

const LOCK: [&str; 4] = [
    "it",
    "redisson_lock_token:{it}",
    "locktopus_queue:{it}",
    "locktopus_waiters:{it}",
];

const SEMAPHORE: [&str; 7] = [
    "it",
    "redisson_lock_token:{it}",
    "locktopus_queue:{it}",
    "locktopus_waiters:{it}",
    "locktopus_holders:{it}",
    "locktopus_kind:{it}",
    "{it}:timeout",
];

pub(super) const KINDS: [Kind; 8] = [
    Kind {
        acquire: "lock_acquire",
        release: "lock_release",
        modes: &["x"],
        keys: &LOCK,
        channel: "redisson_lock__channel:{it}",
        number: "",
    },
    Kind {
        acquire: "mutex_acquire",
        release: "mutex_release",
        modes: &["m"],
        keys: &LOCK,
        channel: "locktopus_mutex__channel:{it}",
        number: "",
    },
    Kind {
        acquire: "notifying_mutex_acquire",
        release: "notifying_mutex_release",
        modes: &["m"],
        keys: &LOCK,
        channel: "locktopus_mutex__channel:{it}",
        number: "",
    },
    Kind {
        acquire: "fair_lock_acquire",
        release: "fair_lock_release",
        modes: &["f"],
        keys: &[
            "it",
            "redisson_lock_token:{it}",
            "redisson_lock_queue:{it}",
            "locktopus_waiters:{it}",
            "redisson_lock_timeout:{it}",
        ],
        channel: "redisson_lock__channel:{it}",
        number: "",
    },
    Kind {
        acquire: "read_lock_acquire",
        release: "read_lock_release",
        modes: &["r", "w"],
        keys: &[
            "it",
            "redisson_lock_token:{it}",
            "locktopus_queue:{it}",
            "locktopus_waiters:{it}",
            "{it}",
        ],
        channel: "redisson_rwlock:{it}",
        number: "",
    },
    Kind {
        acquire: "semaphore_acquire",
        release: "semaphore_release",
        modes: &["s"],
        keys: &SEMAPHORE,
        channel: "redisson_sc:{it}",
        number: "semaphore",
    },
    Kind {
        acquire: "rate_limiter_acquire",
        release: "rate_limiter_release",
        modes: &["t"],
        keys: &SEMAPHORE,
        channel: "redisson_sc:{it}",
        number: "rate_limiter 3 20000",
    },
    Kind {
        acquire: "permit_semaphore_acquire",
        release: "permit_semaphore_release",
        modes: &["p"],
        keys: &[
            "it",
            "redisson_lock_token:{it}",
            "locktopus_queue:{it}",
            "locktopus_waiters:{it}",
            "{it}:timeout",
            "locktopus_kind:{it}",
            "locktopus_holders:{it}",
        ],
        channel: "redisson_sc:{it}",
        number: "permit_semaphore",
    },
];

const BEGIN: i64 = 1_760_000_000_123_456;
pub(super) const NATIVE: &str = "locktopus_native:{it}";

/// A client, which always makes the same request, as a process does.
struct Person {
    owner: Vec<u8>,
    mode: &'static str,
    permits: &'static str,
    lease: &'static str,
    tokens: &'static str,
    inbox: String,
}

struct Scene<'a> {
    kind: &'static Kind,
    publish: &'static str,
    clock: i64,
    steps: Vec<(Step, Vec<String>)>,
    rng: &'a mut Rng,
}

/// So many courses of each kind, and of each script that extends.
pub(super) fn courses(of_each: u64, seed: u64) -> Vec<Course> {
    let mut rng = Rng::new(seed);
    let mut courses = Vec::new();
    for _ in 0..of_each {
        for kind in &KINDS {
            courses.push(waiting(kind, &mut rng));
        }
        for script in ["lock_extend", "mutex_extend", "write_lock_extend"] {
            courses.push(extending(script, &mut rng));
        }
    }
    courses
}

pub(super) fn course(steps: Vec<(Step, Vec<String>)>) -> Course {
    Course {
        why: String::new(),
        advances: false,
        steps,
    }
}

pub(super) fn command(words: &[&str]) -> (Step, Vec<String>) {
    let words = words.iter().map(|word| word.as_bytes().to_vec()).collect();
    (Step::Command(words), Vec::new())
}

/// Sets the server's time from now on, also for commands before the first call of a script.
pub(super) fn late(clock: i64) -> (Step, Vec<String>) {
    let step = Step::Call {
        // Without keys it does nothing.
        script: "classify".to_owned(),
        clock,
        keys: Vec::new(),
        arguments: Vec::new(),
    };
    (step, Vec::new())
}

/// One holds the lock, two wait, and something happens.
fn waiting(kind: &'static Kind, rng: &mut Rng) -> Course {
    let publish = *rng.pick(&["PUBLISH", "PUBLISH", "SPUBLISH", "publish"]);
    let lease = *rng.pick(&["1000", "60000"]);
    let people: Vec<Person> = ["a", "b", "c", "d"]
        .into_iter()
        .map(|name| person(kind, name, if name == "a" { lease } else { "60000" }, rng))
        .collect();
    let mut scene = Scene {
        kind,
        publish,
        clock: BEGIN,
        steps: Vec::new(),
        rng,
    };
    scene.begin();
    let [a, b, c, d] = &people[..] else {
        unreachable!("there are four")
    };
    scene.acquire(a, false, false);
    for one in [b, c] {
        if scene.rng.permille(850) {
            let newcomer = scene.rng.permille(500);
            scene.acquire(one, true, newcomer);
        }
    }
    for _ in 0..scene.rng.between(1, 3) {
        scene.pass();
        match scene.rng.between(0, 9) {
            0..=2 => scene.release(a, false),
            3 => scene.release(b, true),
            4 => scene.release(c, true),
            5 => scene.acquire(b, true, false),
            6 => scene.acquire(c, true, false),
            7 => {
                let newcomer = scene.rng.permille(500);
                scene.acquire(d, true, newcomer);
            }
            8 => scene.acquire(d, false, false),
            _ => scene.acquire(a, false, false),
        }
    }
    course(scene.steps)
}

fn person(kind: &Kind, name: &str, lease: &'static str, rng: &mut Rng) -> Person {
    let owner = match (kind.number, rng.permille(900)) {
        ("permit_semaphore", _) => format!("{}\0\0", name.repeat(14)).into_bytes(),
        (_, true) => format!("9e1f5965-8da3-8c70-a705-d38899d8dba4:{name}2").into_bytes(),
        (_, false) => format!("11111111-2222-4333-8444-555555555555:{}", name.len()).into_bytes(),
    };
    Person {
        owner,
        mode: rng.pick::<&str>(kind.modes),
        permits: match kind.number {
            "" => "1",
            _ => rng.pick::<&str>(&["1", "2"]),
        },
        lease,
        tokens: match kind.number {
            "" => rng.pick::<&str>(&["1", "16"]),
            _ => "0",
        },
        inbox: format!("inbox:{{it}}:{name}"),
    }
}

impl Scene<'_> {
    /// The listeners, and the number of permits.
    fn begin(&mut self) {
        let inboxes = ["a", "b", "c", "d"].map(|name| format!("inbox:{{it}}:{name}"));
        for inbox in &inboxes {
            if self.rng.permille(800) {
                self.listen(inbox, 1);
            }
        }
        for channel in [self.kind.channel, NATIVE] {
            let count = self.rng.between(0, 2);
            self.listen(channel, count as usize);
        }
        if !self.kind.number.is_empty() {
            let permits = *self.rng.pick(&["1", "2", "3"]);
            self.steps.push(command(&["SET", "it", permits]));
            let words = ["SET", "locktopus_kind:{it}", self.kind.number];
            self.steps.push(command(&words));
        }
    }

    fn listen(&mut self, channel: &str, count: usize) {
        let step = Step::Listen {
            sharded: self.publish == "SPUBLISH",
            channel: channel.as_bytes().to_vec(),
            count,
        };
        self.steps.push((step, Vec::new()));
    }

    /// Lets time pass, often to a moment when a release takes the long way.
    fn pass(&mut self) {
        self.clock += *self
            .rng
            .pick(&[500, 1_000_000, 2_000_000, 7_000_000, 70_000_000]);
        if self.rng.permille(500) {
            self.clock -= self.clock % 16;
        }
    }

    fn call(&mut self, script: &str, arguments: Vec<Vec<u8>>) {
        let keys = self.kind.keys.iter();
        let step = Step::Call {
            script: script.to_owned(),
            clock: self.clock,
            keys: keys.map(|key| key.as_bytes().to_vec()).collect(),
            arguments,
        };
        self.steps.push((step, Vec::new()));
        self.clock += 1;
    }

    fn acquire(&mut self, person: &Person, queue: bool, newcomer: bool) {
        let floor = *self.rng.pick(&["0", "0", "1760009000000000"]);
        let place = if queue { "50000" } else { "" };
        let recall = if self.rng.permille(150) { "1" } else { "" };
        let newcomer = if newcomer { "1" } else { "" };
        let rest = [
            person.lease,
            "86400000",
            "0",
            person.mode,
            person.permits,
            person.tokens,
            floor,
            self.publish,
            place,
            &person.inbox,
            self.kind.channel,
            recall,
            newcomer,
        ];
        self.call(self.kind.acquire, words(&person.owner, &rest));
    }

    fn release(&mut self, person: &Person, sought: bool) {
        let waits = *self.rng.pick(&["", "1"]);
        let mut rest = vec![
            person.mode,
            person.permits,
            self.publish,
            self.kind.channel,
            "86400000",
            NATIVE,
            waits,
            "",
        ];
        if sought && self.rng.permille(800) {
            rest.extend(["50000", person.lease, person.tokens, &person.inbox]);
        }
        self.call(self.kind.release, words(&person.owner, &rest));
    }
}

fn words(owner: &[u8], rest: &[&str]) -> Vec<Vec<u8>> {
    let rest = rest.iter().map(|word| word.as_bytes().to_vec());
    std::iter::once(owner.to_vec()).chain(rest).collect()
}

/// Extends several locks, some of which are no longer held.
fn extending(script: &'static str, rng: &mut Rng) -> Course {
    let count = *rng.pick(&[3, 7, 8, 9]);
    let mut steps = Vec::new();
    let (mut keys, mut arguments) = (Vec::new(), vec![b"60000".to_vec()]);
    for at in 0..count {
        let (key, owner) = (format!("{{it}}:{at}"), format!("owner:{at}"));
        let held = match script {
            "mutex_extend" => command(&["SET", &key, &owner]),
            "lock_extend" => command(&["HSET", &key, &owner, "1"]),
            _ => command(&[
                "HSET",
                &key,
                "mode",
                "write",
                &format!("{owner}:write"),
                "1",
            ]),
        };
        match rng.between(0, 19) {
            0 => {}
            1 => steps.push(command(&["SET", &key, "another"])),
            2 => steps.push(command(&["HSET", &key, "another", "1"])),
            3 => steps.push(command(&["SADD", &key, "another"])),
            _ => steps.push(held),
        }
        // Before the requested deadline, after it, or never.
        match rng.between(0, 5) {
            0 => {}
            1 => steps.push(command(&["PEXPIREAT", &key, "1760000090123"])),
            _ => steps.push(command(&["PEXPIREAT", &key, "1760000030123"])),
        }
        keys.push(key.into_bytes());
        arguments.push(owner.into_bytes());
    }
    let call = Step::Call {
        script: script.to_owned(),
        // Also in the last microsecond of a millisecond, and of a second.
        clock: BEGIN - 123_456 + *rng.pick(&[124_245, 999, 999_999]),
        keys,
        arguments,
    };
    if rng.permille(150) {
        let at = rng.between(1, 6) as usize;
        steps.push((Step::Fault(at, "NOPERM not you".to_owned()), Vec::new()));
    }
    steps.push((call, Vec::new()));
    course(steps)
}
