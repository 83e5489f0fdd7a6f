//! Commands on sorted sets, by member.

use crate::redis::numbers::{float, general, integer};
use crate::redis::reply::{Outcome, Refusal, Reply, SYNTAX};
use crate::redis::server::Server;
use crate::redis::value::{Bytes, place};

pub(super) type Members = Vec<(f64, Bytes)>;

const NOT_A_FLOAT: &str = "ERR value is not a valid float";
const NOT_A_NUMBER: &str = "ERR resulting score is not a number (NaN)";

pub(super) fn members<'a>(
    server: &'a mut Server,
    key: &[u8],
) -> Result<&'a [(f64, Bytes)], Refusal> {
    let now = server.expiry_now();
    Ok(server.keys.sorted(key, now)?.map_or(&[], Members::as_slice))
}

fn find(members: &[(f64, Bytes)], member: &[u8]) -> Option<usize> {
    members.iter().position(|(_, name)| name == member)
}

fn put(members: &mut Members, score: f64, member: &[u8]) {
    // A small set stores whole scores as integers, which have only one zero.
    let score = score + 0.0;
    let at = place(members, score, member);
    members.insert(at, (score, member.to_vec()));
}

/// The options of `ZADD`.
#[derive(Default)]
struct AddOptions {
    only_new: bool,
    only_old: bool,
    greater: bool,
    less: bool,
    changed: bool,
    incr: bool,
}

impl AddOptions {
    /// Parses the options, and returns how many words they took.
    fn parse(words: &[Bytes]) -> Result<(Self, usize), Refusal> {
        let mut options = Self::default();
        let mut used = 0;
        for word in words {
            match word.to_ascii_uppercase().as_slice() {
                b"NX" => options.only_new = true,
                b"XX" => options.only_old = true,
                b"GT" => options.greater = true,
                b"LT" => options.less = true,
                b"CH" => options.changed = true,
                b"INCR" => options.incr = true,
                _ => break,
            }
            used += 1;
        }
        let pairs = words.len() - used;
        if pairs == 0 || !pairs.is_multiple_of(2) {
            return Err(SYNTAX.into());
        }
        if options.only_new && options.only_old {
            return Err("ERR XX and NX options at the same time are not compatible".into());
        }
        let bounds = options.greater || options.less;
        if (options.only_new && bounds) || (options.greater && options.less) {
            return Err("ERR GT, LT, and/or NX options at the same time are not compatible".into());
        }
        if options.incr && pairs > 2 {
            return Err("ERR INCR option supports a single increment-element pair".into());
        }
        Ok((options, used))
    }
}

/// The effect of `ZADD` on one member.
enum Added {
    Nothing,
    New(f64),
    Same(f64),
    Moved(f64),
}

fn add_one(
    members: &mut Members,
    options: &AddOptions,
    score: f64,
    member: &[u8],
) -> Result<Added, Refusal> {
    let Some(at) = find(members, member) else {
        if options.only_old {
            return Ok(Added::Nothing);
        }
        put(members, score, member);
        return Ok(Added::New(score));
    };
    if options.only_new {
        return Ok(Added::Nothing);
    }
    let old = members[at].0;
    let score = if options.incr { old + score } else { score };
    if score.is_nan() {
        return Err(NOT_A_NUMBER.into());
    }
    if (options.greater && score <= old) || (options.less && score >= old) {
        return Ok(Added::Nothing);
    }
    #[allow(clippy::float_cmp, reason = "a server compares them so")]
    if score == old {
        return Ok(Added::Same(score));
    }
    members.remove(at);
    put(members, score, member);
    Ok(Added::Moved(score))
}

pub(super) fn add(server: &mut Server, words: &[Bytes]) -> Outcome {
    add_all(server, &words[1], &words[2..], AddOptions::default())
}

pub(super) fn incr_by(server: &mut Server, words: &[Bytes]) -> Outcome {
    let forced = AddOptions {
        incr: true,
        ..AddOptions::default()
    };
    add_all(server, &words[1], &words[2..], forced)
}

fn add_all(server: &mut Server, key: &[u8], words: &[Bytes], forced: AddOptions) -> Outcome {
    // `ZINCRBY` has no options: the server parses them as scores, and fails.
    let (options, used) = if forced.incr {
        (forced, 0)
    } else {
        AddOptions::parse(words)?
    };
    let pairs = words[used..].chunks_exact(2);
    let scores: Option<Vec<f64>> = pairs.clone().map(|pair| float(&pair[0])).collect();
    let scores = scores.ok_or(NOT_A_FLOAT)?;
    let now = server.expiry_now();
    if server.keys.sorted(key, now)?.is_none() && options.only_old {
        return Ok(if options.incr {
            Reply::Nil
        } else {
            Reply::Int(0)
        });
    }
    let members = server.keys.sorted_mut(key, now)?;
    let (mut new, mut moved, mut last) = (0, 0, None);
    for (score, pair) in scores.into_iter().zip(pairs) {
        last = match add_one(members, &options, score, &pair[1])? {
            Added::Nothing => None,
            Added::New(score) => {
                new += 1;
                Some(score)
            }
            Added::Same(score) => Some(score),
            Added::Moved(score) => {
                moved += 1;
                Some(score)
            }
        };
    }
    server.keys.drop_if_empty(key);
    if options.incr {
        return Ok(last.map_or(Reply::Nil, |score| Reply::bulk(general(score))));
    }
    Ok(Reply::Int(new + if options.changed { moved } else { 0 }))
}

pub(super) fn remove(server: &mut Server, words: &[Bytes]) -> Outcome {
    let before = members(server, &words[1])?.len();
    if before == 0 {
        return Ok(Reply::Int(0));
    }
    let now = server.expiry_now();
    let members = server.keys.sorted_mut(&words[1], now)?;
    members.retain(|(_, member)| !words[2..].contains(member));
    let removed = before - members.len();
    server.keys.drop_if_empty(&words[1]);
    Ok(Reply::count(removed))
}

fn score_of(members: &[(f64, Bytes)], member: &[u8]) -> Reply {
    find(members, member).map_or(Reply::Nil, |at| Reply::bulk(general(members[at].0)))
}

pub(super) fn score(server: &mut Server, words: &[Bytes]) -> Outcome {
    Ok(score_of(members(server, &words[1])?, &words[2]))
}

pub(super) fn scores(server: &mut Server, words: &[Bytes]) -> Outcome {
    let members = members(server, &words[1])?;
    let scores = words[2..].iter().map(|member| score_of(members, member));
    Ok(Reply::Array(scores.collect()))
}

pub(super) fn len(server: &mut Server, words: &[Bytes]) -> Outcome {
    Ok(Reply::count(members(server, &words[1])?.len()))
}

pub(super) fn rank(server: &mut Server, words: &[Bytes]) -> Outcome {
    let at = find(members(server, &words[1])?, &words[2]);
    Ok(at.map_or(Reply::Nil, Reply::count))
}

pub(super) fn rank_reversed(server: &mut Server, words: &[Bytes]) -> Outcome {
    let members = members(server, &words[1])?;
    let at = find(members, &words[2]).map(|at| members.len() - 1 - at);
    Ok(at.map_or(Reply::Nil, Reply::count))
}

pub(super) fn pop_min(server: &mut Server, words: &[Bytes]) -> Outcome {
    pop(server, words, |members| members.remove(0))
}

pub(super) fn pop_max(server: &mut Server, words: &[Bytes]) -> Outcome {
    pop(server, words, |members| members.remove(members.len() - 1))
}

fn pop(server: &mut Server, words: &[Bytes], take: fn(&mut Members) -> (f64, Bytes)) -> Outcome {
    let count = match &words[2..] {
        [] => 1,
        [count] => {
            let count = integer(count).and_then(|count| usize::try_from(count).ok());
            count.ok_or("ERR value is out of range, must be positive")?
        }
        _ => return Err(SYNTAX.into()),
    };
    let length = members(server, &words[1])?.len();
    if length == 0 {
        return Ok(Reply::Array(Vec::new()));
    }
    let now = server.expiry_now();
    let members = server.keys.sorted_mut(&words[1], now)?;
    let mut popped = Vec::new();
    for _ in 0..count.min(length) {
        let (score, member) = take(members);
        popped.extend([Reply::Bulk(member), Reply::bulk(general(score))]);
    }
    server.keys.drop_if_empty(&words[1]);
    Ok(Reply::Array(popped))
}
