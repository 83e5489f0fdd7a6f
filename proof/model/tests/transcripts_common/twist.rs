//! Twists of a course: failing commands, clocks exactly at a limit or set back, clients of other
//! libraries, spoilt keys, processes that stop listening.

use locktopus_model::Rng;
use locktopus_model::transcripts::course::{Course, Step};

/// An owner of another library.
const THEIRS: &str = "11111111-2222-4333-8444-555555555555:7";

/// Commands that spoil a key, which replaces the second word. `OURS` and `THEIRS` stand for owners.
const DONE: [&[&str]; 48] = [
    &["DEL", ""],
    &["DEL", ""],
    &["PERSIST", ""],
    &["PEXPIRE", "", "1"],
    &["PEXPIRE", "", "100000"],
    &["PEXPIRE", "", "7"],
    &["SET", "", "x"],
    &["SET", "", "0"],
    &["SET", "", "1"],
    &["SET", "", "2"],
    &["SET", "", "3", "PX", "5000"],
    &["SET", "", "-1"],
    &["SET", "", "-3"],
    &["SET", "", "1.5"],
    &["SET", "", "12345678901234567"],
    &["SET", "", "123456789012345678"],
    &["SET", "", "9007199254740991"],
    &["SET", "", "9007199254740990"],
    &["SET", "", "9007199254740974"],
    &["SET", "", "1760000001000000"],
    &["SET", "", "1790000000000000"],
    &["SET", "", "semaphore"],
    &["SET", "", "permit_semaphore"],
    &["SET", "", "latch"],
    &["SET", "", "THEIRS"],
    &["SET", "", "THEIRS", "PX", "5000"],
    &["SET", "", "OURS"],
    &["SET", "", "OURS", "PX", "5000"],
    &["HSET", "", "a", "b"],
    &["HSET", "", "mode", "read"],
    &["HSET", "", "mode", "write", "THEIRS:write", "1"],
    &["HSET", "", "mode", "read", "THEIRS", "2"],
    &["HSET", "", "THEIRS", "1"],
    &["HSET", "", "THEIRS", "2"],
    &["HSET", "", "OURS", "1"],
    &["HSET", "", "OURS", "x"],
    &["HSET", "", "!open", "1760000000010"],
    &["HSET", "", "!recall", "OURS inbox"],
    &["HSET", "", "!recall", "spoilt"],
    &["RPUSH", "", "THEIRS"],
    &["RPUSH", "", "OURS"],
    &["LPUSH", "", "THEIRS"],
    &["SADD", "", "x"],
    &["ZADD", "", "1", "x"],
    &["ZADD", "", "1760000100000", "THEIRS"],
    &["ZADD", "", "922337203685477", "0123456789abcdef"],
    &["ZADD", "", "1760000100000", "2 OURS"],
    &["ZADD", "", "+inf", "1 THEIRS"],
];

const REFUSALS: [&str; 4] = ["NOPERM no", "OOM no", "WRONGTYPE no", "ERR no"];

/// Limits in scripts, in ms, besides their arguments.
const LIMITS: [i64; 12] = [
    1,
    16,
    20,
    1_000,
    2_000,
    3_000,
    30_000,
    60_000,
    120_000,
    300_000,
    7_200_000,
    604_800_000,
];

/// Applies some twists to a course.
pub(super) fn twist(course: &mut Course, rng: &mut Rng) {
    course.advances = rng.permille(150);
    if rng.permille(250) {
        choose(course, rng);
    }
    if rng.permille(200) {
        pace(course, rng);
    }
    if rng.permille(500) {
        wait_as_others(course, rng);
    }
    if rng.permille(450) {
        move_clocks(course, rng);
    }
    if rng.permille(400) {
        spoil(course, rng);
    }
    if rng.permille(200) {
        faults(course, rng);
    }
    if rng.permille(250) {
        deafen(course, rng);
    }
    if rng.permille(100) {
        round(course, rng);
    }
}

fn calls(course: &Course) -> Vec<usize> {
    let steps = course.steps.iter().enumerate();
    let calls = steps.filter(|(_, (step, _))| matches!(step, Step::Call { .. }));
    calls.map(|(at, _)| at).collect()
}

/// Changes options of a process: how it publishes, and how long tokens are kept.
fn choose(course: &mut Course, rng: &mut Rng) {
    let publish = *rng.pick(&["PUBLISH", "PUBLISH", "SPUBLISH", "publish", ""]);
    let forever = rng.permille(500);
    let only = rng.permille(500).then(|| *rng.pick(&calls(course)));
    for (at, (step, _)) in course.steps.iter_mut().enumerate() {
        let Step::Call {
            script, arguments, ..
        } = step
        else {
            continue;
        };
        if only.is_some_and(|only| only != at) {
            continue;
        }
        // The argument that tells how long to keep tokens.
        let kept = match script.rsplit('_').next().unwrap_or_default() {
            "acquire" if script.ends_with("group_acquire") => Some(0),
            "acquire" | "evict" => Some(2),
            "release" | "counter" => Some(5),
            _ => None,
        };
        let silent = ["release", "evict"]
            .iter()
            .any(|word| script.ends_with(word));
        for (place, word) in arguments.iter_mut().enumerate() {
            let said = matches!(word.as_slice(), b"PUBLISH" | b"SPUBLISH");
            if said && (silent || !publish.is_empty()) {
                *word = publish.as_bytes().to_vec();
            }
            if forever && Some(place) == kept {
                *word = b"0".to_vec();
            }
        }
    }
}

/// Makes the pauses between all calls the same.
fn pace(course: &mut Course, rng: &mut Rng) {
    let gap = *rng.pick(&[
        0, 1, 16, 1_000, 20_000, 100_000, 700_000, 1_000_000, 1_500_000, 2_001_000, 3_000_000,
        3_001_000, 10_000_000, 31_000_000,
    ]);
    let mut next = None;
    for (step, _) in &mut course.steps {
        if let Step::Call { clock, .. } = step {
            let now = next.unwrap_or(*clock);
            *clock = now;
            next = Some(now + gap);
        }
    }
}

/// Adds waiters of another library to a fair queue, which listen or not, leave, or hold the lock.
fn wait_as_others(course: &mut Course, rng: &mut Rng) {
    for _ in 0..=rng.below(4) {
        let at = *rng.pick(&calls(course));
        let Step::Call {
            script,
            keys,
            arguments,
            clock,
        } = &course.steps[at].0
        else {
            unreachable!("these are calls")
        };
        if !script.contains("fair_lock") || keys.len() < 5 {
            return;
        }
        let theirs = THEIRS.replace(":7", &format!(":{}", 7 + rng.below(3)));
        let millis = clock / 1_000 + *rng.pick(&[300_000, 600_000, 5_000, -1, -8_000_000]);
        let millis = millis.to_string();
        let channel = arguments.iter().rfind(|word| word.contains(&b'{'));
        let channel = channel.map(|channel| [&channel[..], b":", theirs.as_bytes()].concat());
        let words = |command: &str, key: &[u8], rest: &[&str]| {
            let mut all = vec![command.as_bytes().to_vec(), key.to_vec()];
            all.extend(rest.iter().map(|word| word.as_bytes().to_vec()));
            Step::Command(all)
        };
        let (lock, queue, ends) = (keys[0].clone(), keys[2].clone(), keys[4].clone());
        let mut steps = match rng.below(8) {
            0 => vec![
                words("LREM", &queue, &["0", &theirs]),
                words("ZREM", &ends, &[&theirs]),
            ],
            1 => vec![
                words("DEL", &lock, &[]),
                words("HSET", &lock, &[&theirs, "1"]),
                words("PEXPIRE", &lock, &["30000"]),
            ],
            2 => vec![words("DEL", &lock, &[])],
            3 => vec![words("RPUSH", &queue, &[&theirs])],
            _ => vec![
                words("RPUSH", &queue, &[&theirs]),
                words("ZADD", &ends, &[&millis, &theirs]),
            ],
        };
        if let Some(channel) = channel
            && rng.permille(700)
        {
            steps.push(Step::Listen {
                sharded: rng.permille(100),
                channel,
                count: usize::try_from(rng.below(2)).unwrap(),
            });
        }
        for step in steps.into_iter().rev() {
            course.steps.insert(at, (step, Vec::new()));
        }
    }
}

/// From one call on, moves all clocks to just before, at or just after the end of something that an
/// earlier call asked for, or sets them back.
fn move_clocks(course: &mut Course, rng: &mut Rng) {
    for _ in 0..=rng.below(3) {
        let calls = calls(course);
        if calls.len() < 2 {
            return;
        }
        let later = usize::try_from(1 + rng.below(calls.len() as u64 - 1)).unwrap();
        let earlier = usize::try_from(rng.below(later as u64)).unwrap();
        let (from, begun) = match &course.steps[calls[earlier]].0 {
            Step::Call {
                clock, arguments, ..
            } => {
                let numbers = arguments.iter().filter_map(|word| {
                    let number: i64 = std::str::from_utf8(word).ok()?.parse().ok()?;
                    (10..1_000_000_000).contains(&number).then_some(number)
                });
                let mut limits: Vec<i64> = numbers.collect();
                if limits.is_empty() || rng.permille(300) {
                    limits = LIMITS.to_vec();
                }
                let limit = *rng.pick(&limits);
                let span = *rng.pick(&[1_000, 1_000, 1_000, 125, 2_000, -1_000, -125]);
                (*clock, limit * span)
            }
            _ => unreachable!("these are calls"),
        };
        let off = *rng.pick(&[0, 0, 1, -1, 999, 1_000, -1_000, 1_001, 500, 16]);
        let Step::Call { clock, .. } = &course.steps[calls[later]].0 else {
            unreachable!("these are calls")
        };
        let moved = from + begun + off - clock;
        for at in &calls[later..] {
            if let Step::Call { clock, .. } = &mut course.steps[*at].0 {
                *clock += moved;
            }
        }
    }
}

/// Rounds clocks to whole seconds, whole milliseconds or multiples of sixteen, or makes them equal.
fn round(course: &mut Course, rng: &mut Rng) {
    let to = *rng.pick(&[1_000_000, 1_000, 16, 100_000, 100_000_000]);
    let off = *rng.pick(&[0, 0, 1]);
    for (step, _) in &mut course.steps {
        if let Step::Call { clock, .. } = step {
            *clock = *clock / to * to + off;
        }
    }
}

fn spoil(course: &mut Course, rng: &mut Rng) {
    for _ in 0..=rng.below(3) {
        let calls = calls(course);
        let at = *rng.pick(&calls);
        let Step::Call {
            keys, arguments, ..
        } = &course.steps[at].0
        else {
            unreachable!("these are calls")
        };
        if keys.is_empty() {
            continue;
        }
        let key = rng.pick(keys).clone();
        let owners: Vec<&Vec<u8>> = arguments.iter().filter(|word| word.len() >= 16).collect();
        let ours = match owners.is_empty() {
            true => b"00000000-0000-8c70-a705-000000000000:4".to_vec(),
            false => (*rng.pick(&owners)).clone(),
        };
        let ours = String::from_utf8_lossy(&ours).into_owned();
        let mut words: Vec<Vec<u8>> = rng
            .pick(&DONE)
            .iter()
            .map(|word| {
                word.replace("THEIRS", THEIRS)
                    .replace("OURS", &ours)
                    .into_bytes()
            })
            .collect();
        words[1] = key;
        course.steps.insert(at, (Step::Command(words), Vec::new()));
    }
}

fn faults(course: &mut Course, rng: &mut Rng) {
    for at in calls(course).into_iter().rev() {
        if rng.permille(150) {
            let fault = Step::Fault(
                usize::try_from(1 + rng.below(9)).unwrap(),
                (*rng.pick(&REFUSALS)).to_owned(),
            );
            course.steps.insert(at, (fault, Vec::new()));
        }
    }
}

/// Adds or removes listeners, also those of another library.
fn deafen(course: &mut Course, rng: &mut Rng) {
    let calls = calls(course);
    let mut known: Vec<(bool, Vec<u8>)> = Vec::new();
    for (step, _) in &course.steps {
        match step {
            Step::Listen {
                sharded, channel, ..
            } => known.push((*sharded, channel.clone())),
            Step::Call {
                script, arguments, ..
            } if script.contains("fair") => {
                for word in arguments.iter().filter(|word| word.contains(&b'{')) {
                    let channel = [&word[..], b":", THEIRS.as_bytes()].concat();
                    known.push((false, channel));
                }
            }
            _ => {}
        }
    }
    for _ in 0..=rng.below(3) {
        if known.is_empty() {
            return;
        }
        let (sharded, channel) = rng.pick(&known).clone();
        let step = Step::Listen {
            sharded,
            channel,
            count: usize::try_from(rng.below(3)).unwrap(),
        };
        course.steps.insert(*rng.pick(&calls), (step, Vec::new()));
    }
}
