//! Courses with about as many waiters or holders as one script handles: first the dead, then the
//! deaf, then others.

use locktopus_model::Rng;
use locktopus_model::transcripts::course::{Course, Step};

use super::scenes::{KINDS, Kind, NATIVE, command, course, late};

const NOW: i64 = 1_760_000_000_123_440;
const WAITERS: &str = "locktopus_waiters:{it}";
const MANY: [usize; 8] = [0, 0, 0, 1, 63, 64, 65, 66];
const HOLDERS: [usize; 7] = [0, 1, 63, 64, 65, 256, 257];

/// So many courses of each kind.
pub(super) fn courses(of_each: u64, seed: u64) -> Vec<Course> {
    let mut rng = Rng::new(seed);
    let mut courses = Vec::new();
    for _ in 0..of_each {
        for kind in &KINDS {
            courses.push(crowd(kind, &mut rng));
        }
    }
    courses
}

/// Adds members with scores to a sorted set.
fn add(key: &str, members: &[(i64, String)]) -> (Step, Vec<String>) {
    let mut words = vec!["ZADD".to_owned(), key.to_owned()];
    for (score, member) in members {
        words.extend([score.to_string(), member.clone()]);
    }
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    command(&words)
}

fn crowd(kind: &'static Kind, rng: &mut Rng) -> Course {
    let publish = *rng.pick(&["PUBLISH", "PUBLISH", "SPUBLISH", "publish"]);
    let mut steps = vec![late(NOW)];
    steps.push((
        Step::Listen {
            sharded: publish == "SPUBLISH",
            channel: b"inbox".to_vec(),
            count: 1,
        },
        Vec::new(),
    ));
    let number = !kind.number.is_empty();
    if number {
        let free = *rng.pick(&["0", "1", "64", "65", "300"]);
        steps.push(command(&["SET", "it", free]));
        steps.push(command(&["SET", "locktopus_kind:{it}", kind.number]));
        let dead = *rng.pick(&HOLDERS);
        let holders: Vec<_> = (0..dead)
            .map(|at| match kind.number {
                "permit_semaphore" => (NOW / 1_000 - 1, format!("{at:014}\0\0")),
                _ => (NOW / 1_000 - 1, format!("1 {at}")),
            })
            .collect();
        if dead > 0 {
            steps.push(add(kind.keys[4], &holders));
        }
    } else if rng.permille(500) {
        hold(kind, &mut steps);
    }
    let [dead, deaf, others] = [(); 3].map(|()| *rng.pick(&MANY));
    if kind.modes == ["f"] {
        fair_line(dead, deaf, others, rng, &mut steps);
    } else if dead + deaf + others > 0 {
        let mode = *rng.pick(kind.modes);
        let mut line = Vec::new();
        for at in 0..dead + deaf + others {
            let place = if at < dead { "8" } else { "50000" };
            let inbox = if at < dead + deaf { "none" } else { "inbox" };
            let owner = format!("o{at}");
            let member = format!("{place} 60000 1 1 {mode} {} {owner} {inbox}", owner.len());
            line.push((NOW - 20_000 + i64::try_from(at).unwrap(), member));
        }
        steps.push(add(kind.keys[2], &line));
        steps.push(command(&["PEXPIRE", kind.keys[2], "70000"]));
    }
    let clock = NOW + *rng.pick(&[0, 1]);
    let (script, arguments) = match rng.below(3) {
        0 => {
            let words = [
                "me",
                kind.modes[0],
                "1",
                publish,
                kind.channel,
                "86400000",
                NATIVE,
                "1",
                "",
            ];
            (kind.release.to_owned(), words.to_vec())
        }
        1 => {
            let tokens = if number { "0" } else { "1" };
            let what = kind.acquire.trim_end_matches("_acquire");
            (
                format!("{what}_evict"),
                vec![publish, kind.channel, "86400000", tokens],
            )
        }
        _ => {
            let (permits, tokens) = if number { ("2", "0") } else { ("1", "1") };
            let words = [
                "me",
                "60000",
                "86400000",
                "0",
                kind.modes[0],
                permits,
                tokens,
                "0",
                publish,
                "50000",
                "inbox",
                kind.channel,
                "",
                "",
            ];
            (kind.acquire.to_owned(), words.to_vec())
        }
    };
    let call = Step::Call {
        script,
        clock,
        keys: kind
            .keys
            .iter()
            .map(|key| key.as_bytes().to_vec())
            .collect(),
        arguments: arguments
            .iter()
            .map(|word| word.as_bytes().to_vec())
            .collect(),
    };
    steps.push((call.clone(), Vec::new()));
    if rng.permille(500) {
        steps.push((call, Vec::new()));
    }
    course(steps)
}

fn hold(kind: &Kind, steps: &mut Vec<(Step, Vec<String>)>) {
    match kind.modes {
        ["m"] => steps.push(command(&["SET", "it", "me", "PX", "20000"])),
        ["r", "w"] => steps.push(command(&["HSET", "it", "mode", "write", "me:write", "1"])),
        _ => steps.push(command(&["HSET", "it", "me", "1"])),
    }
    steps.push(command(&["PEXPIRE", "it", "20000"]));
}

/// Dead waiters of ours, deaf ones of another library, and listening ones of ours.
fn fair_line(
    dead: usize,
    deaf: usize,
    others: usize,
    rng: &mut Rng,
    steps: &mut Vec<(Step, Vec<String>)>,
) {
    const QUEUE: &str = "redisson_lock_queue:{it}";
    let mut line = vec!["RPUSH".to_owned(), QUEUE.to_owned()];
    let mut notes = vec!["HSET".to_owned(), WAITERS.to_owned()];
    let theirs = rng.permille(500);
    for at in 0..dead + deaf + others {
        let owner = match theirs && (dead..dead + deaf).contains(&at) {
            true => format!("11111111-2222-4333-8444-{at:012}:7"),
            false => format!("9e1f5965-8da3-8c70-a705-{at:012}:1"),
        };
        if !owner.contains("4333") {
            let until = NOW / 1_000 + if at < dead { -1 } else { 30_000 };
            let inbox = if at < dead + deaf { "none" } else { "inbox" };
            notes.extend([owner.clone(), format!("{until} 60000 1 1 f {inbox}")]);
            notes.extend([format!("#{owner}"), (NOW - 5_000_000).to_string()]);
        }
        line.push(owner);
    }
    for words in [line, notes] {
        if words.len() > 2 {
            let words: Vec<_> = words.iter().map(String::as_str).collect();
            steps.push(command(&words));
        }
    }
}
