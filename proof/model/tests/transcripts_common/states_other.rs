//! Constructed states for scripts of several kinds or none: groups of locks, latches, extended
//! permits, keys to classify, and guarded writes.

use locktopus_model::Rng;
use locktopus_model::transcripts::course::{Course, Step};
use locktopus_model::transcripts::play::REPLID;

use super::scenes::{command, course, late};
use super::states::THEIRS;

const NOW: i64 = 1_760_000_000_123_440;
const OWNERS: [&str; 3] = [
    "9e1f5965-8da3-8c70-a705-d38899d8dba4:a2",
    "9e1f5965-8da3-8c70-a705-d38899d8dba4:b1",
    THEIRS[0],
];
/// Tokens, and values taken for one.
const TOKENS: [&str; 10] = [
    "0",
    "1",
    "2",
    "5",
    "0.5",
    "x",
    "",
    "9007199254740991",
    "9007199254740992",
    "-1",
];

type Steps = Vec<(Step, Vec<String>)>;

/// So many courses of each.
pub(super) fn courses(of_each: u64, seed: u64) -> Vec<Course> {
    let mut rng = Rng::new(seed);
    let mut courses = Vec::new();
    for _ in 0..of_each {
        for about in [group, latch, permits, classified, guarded] {
            let mut steps = vec![late(NOW)];
            about(&mut steps, &mut rng);
            courses.push(course(steps));
        }
    }
    courses
}

fn call(steps: &mut Steps, script: &str, clock: i64, keys: &[&str], arguments: &[&str]) {
    let [keys, arguments] =
        [keys, arguments].map(|words| words.iter().map(|word| word.as_bytes().to_vec()).collect());
    let step = Step::Call {
        script: script.to_owned(),
        clock,
        keys,
        arguments,
    };
    steps.push((step, Vec::new()));
}

/// A group of two or three names, some of them held, wanted or of another type.
fn group(steps: &mut Steps, rng: &mut Rng) {
    let (mut keys, mut words) = (Vec::new(), Vec::new());
    let publish = *rng.pick(&["PUBLISH", "SPUBLISH"]);
    for name in ["it", "other"] {
        let mutex = rng.permille(500);
        let owner = *rng.pick(&OWNERS);
        match (rng.below(6), mutex) {
            (0 | 1, true) => steps.push(command(&["SET", name, owner, "PX", "20000"])),
            (0 | 1, false) => steps.push(command(&["HSET", name, owner, "1"])),
            (2, _) => steps.push(command(&["RPUSH", name, "x"])),
            (3, _) => steps.push(command(&["SET", name, "7"])),
            _ => {}
        }
        let own = [
            "redisson_lock_token:{it}",
            "locktopus_queue:{it}",
            "locktopus_waiters:{it}",
        ];
        let own = own.map(|key| key.replace("it", name));
        if rng.permille(250) {
            let ticket = (NOW - *rng.pick(&[10, 8_000, 8_001])).to_string();
            let member = format!("8 60000 1 1 x {} {owner} inbox", owner.len());
            steps.push(command(&["ZADD", &own[1], &ticket, &member]));
        }
        if rng.permille(250) {
            let note = format!("{owner} inbox");
            steps.push(command(&["HSET", &own[2], "!recall", &note]));
        }
        if rng.permille(500) {
            let last = (NOW + *rng.pick(&[-16, -1, 0, 1, 50])).to_string();
            steps.push(command(&["SET", &own[0], &last]));
        }
        let count = if mutex && rng.permille(300) { 1 } else { 4 };
        keys.push(name.to_owned());
        keys.extend(own.into_iter().take(count - 1));
        let floor = (NOW + *rng.pick(&[-1, 0, 1, 100])).to_string();
        let floor = if rng.permille(600) {
            "0".to_owned()
        } else {
            floor
        };
        let tokens = if count == 1 {
            "0"
        } else {
            *rng.pick(&["0", "1", "16"])
        };
        let asked = *rng.pick(&OWNERS);
        let letter = if mutex { "m" } else { "l" };
        words.extend(
            [&count.to_string(), letter, asked, "60000", tokens, &floor].map(str::to_owned),
        );
    }
    let late = NOW + *rng.pick(&[-1, 0, 1]);
    let late = if rng.permille(700) {
        "0".to_owned()
    } else {
        late.to_string()
    };
    let mut all = vec!["86400000".to_owned(), late, publish.to_owned()];
    all.extend(words);
    let mut script = "group_acquire";
    if rng.permille(200) {
        script = "quarantined_group_acquire";
        keys.push("locktopus_history".to_owned());
        all.extend(["200000".to_owned(), format!("{REPLID}=200000")]);
    }
    let [keys, all]: [Vec<&str>; 2] =
        [&keys, &all].map(|words| words.iter().map(String::as_str).collect());
    call(steps, script, NOW, &keys, &all);
}

fn number(steps: &mut Steps, rng: &mut Rng) {
    let numbers = [
        "1",
        "2",
        "0",
        "-1",
        "x",
        "12345678901234567",
        "123456789012345678",
        "1.5",
    ];
    if rng.permille(800) {
        steps.push(command(&["SET", "it", *rng.pick(&numbers)]));
        if rng.permille(300) {
            steps.push(command(&["PEXPIRE", "it", "5000"]));
        }
    } else if rng.permille(200) {
        steps.push(command(&["HSET", "it", "a", "1"]));
    }
    if rng.permille(600) {
        let kinds = ["latch", "latch", "semaphore", "permit_semaphore"];
        steps.push(command(&["SET", "locktopus_kind:{it}", *rng.pick(&kinds)]));
    }
    for key in ["locktopus_holders:{it}", "{it}:timeout"] {
        if rng.permille(200) {
            let end = (NOW / 1_000 + *rng.pick(&[-1, 0, 1, 1_000])).to_string();
            steps.push(command(&["ZADD", key, &end, "1 somebody"]));
        }
    }
}

fn latch(steps: &mut Steps, rng: &mut Rng) {
    const KEYS: [&str; 5] = [
        "it",
        "locktopus_kind:{it}",
        "locktopus_holders:{it}",
        "{it}:timeout",
        "locktopus_done:{it}:1",
    ];
    number(steps, rng);
    for at in 0..rng.between(1, 2) {
        if rng.permille(200) {
            call(steps, "latch_read", NOW, &KEYS[..4], &[]);
            continue;
        }
        let action = *rng.pick(&["init", "count_down", "delete"]);
        let count = *rng.pick(&["1", "2", "3"]);
        let words = [action, count, "PUBLISH", "channel", "120000"];
        let mut keys = KEYS;
        if rng.permille(500) {
            keys[4] = "locktopus_done:{it}:2";
        }
        call(steps, "latch", NOW + at, &keys, &words);
    }
}

fn permits(steps: &mut Steps, rng: &mut Rng) {
    let (mut keys, mut words) = (Vec::new(), vec!["2000"]);
    let ids = ["aaaaaaaaaaaaaa\0\0", "bbbbbbbbbbbbbb\0\0"];
    for id in ids {
        for last in ["\0", "\u{1}", "\u{2}"] {
            let end =
                (NOW / 1_000 + *rng.pick(&[-1, 0, 1, 1_000, 1_999, 2_000, 2_001])).to_string();
            if rng.permille(800) {
                let permit = format!("{}{last}", &id[..15]);
                steps.push(command(&["ZADD", "{it}:timeout", &end, &permit]));
            }
        }
        keys.push("{it}:timeout");
        words.extend([id, *rng.pick(&["1", "2", "3"])]);
    }
    if rng.permille(200) {
        let line = *rng.pick(&["NOPERM no", "WRONGTYPE no"]);
        let at = usize::try_from(rng.between(1, 4)).unwrap();
        steps.push((Step::Fault(at, line.to_owned()), Vec::new()));
    }
    let clock = NOW + *rng.pick(&[0, -440, 60, 59, 560, -441]);
    call(steps, "permit_semaphore_extend", clock, &keys, &words);
}

fn classified(steps: &mut Steps, rng: &mut Rng) {
    const KEYS: [&str; 5] = [
        "it",
        "locktopus_holders:{it}",
        "{it}:timeout",
        "redisson_lock_timeout:{it}",
        "locktopus_kind:{it}",
    ];
    let long = format!("9e1f5965-8da3-8c70-a705-{}", "0".repeat(75));
    let owners = [
        OWNERS[0].replace("a2", "2"),
        OWNERS[1].replace("b1", "1"),
        THEIRS[0].to_owned(),
        THEIRS[1].to_owned(),
        "11111111-2222-4333-8444-55555555555:77".to_owned(),
        "11111111-2222-4333-8444-555555555555:".to_owned(),
        "11111111-2222-4333-8444-555555555555:-7".to_owned(),
        long.clone(),
        long + "0",
        "x".to_owned(),
        "mode".to_owned(),
    ];
    let owner = rng.pick(&owners).as_str();
    match rng.below(6) {
        0 => steps.push(command(&["SET", "it", owner])),
        1 => steps.push(command(&["SET", "it", "7"])),
        2 => steps.push(command(&[
            "HSET",
            "it",
            "mode",
            *rng.pick(&["read", "write", "x"]),
        ])),
        3 => steps.push(command(&["RPUSH", "it", owner])),
        _ => {
            steps.push(command(&["HSET", "it", owner, "1"]));
            if rng.permille(100) {
                steps.push(command(&["HSET", "it", "more", "1"]));
            }
        }
    }
    if rng.permille(300) {
        let mark = *rng.pick(&["semaphore 3 0", "rate_limiter 3 9000"]);
        steps.push(command(&["SET", KEYS[4], mark]));
    }
    for key in &KEYS[1..4] {
        if rng.permille(300) {
            steps.push(command(&["ZADD", key, "1", "x"]));
        }
    }
    call(steps, "classify", NOW, &KEYS, &[]);
}

fn guarded(steps: &mut Steps, rng: &mut Rng) {
    const FENCE: &str = "locktopus_fence:{it}";
    match rng.below(8) {
        0 => steps.push(command(&["SET", FENCE, "x"])),
        1 => {}
        _ => {
            for (field, values) in [
                ("lock", &["lock:it", "lock:it", "mutex:it"][..]),
                ("token", &TOKENS),
                ("holder", &["h", "i", ""]),
            ] {
                if rng.permille(850) {
                    steps.push(command(&["HSET", FENCE, field, *rng.pick(values)]));
                }
            }
        }
    }
    if rng.permille(500) {
        steps.push(command(&[
            "PEXPIRE",
            FENCE,
            *rng.pick(&["999", "1000", "1001"]),
        ]));
    }
    if rng.permille(100) {
        let line = *rng.pick(&["NOPERM no", "WRONGTYPE no", "OOM no"]);
        let at = usize::try_from(rng.between(1, 4)).unwrap();
        steps.push((Step::Fault(at, line.to_owned()), Vec::new()));
    }
    let words = [
        "lock:it",
        *rng.pick(&TOKENS),
        *rng.pick(&["h", "i", ""]),
        *rng.pick(&["0", "1000"]),
        *rng.pick(&["SET", "DEL"]),
        "value",
        *rng.pick(&["0", "700"]),
    ];
    call(steps, "guarded_write", NOW, &["it", FENCE], &words);
}
