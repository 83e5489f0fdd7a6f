//! Commands on keys of any type: existence and expiry.

use crate::redis::numbers::integer_or_error;
use crate::redis::reply::{Outcome, Refusal, Reply};
use crate::redis::server::Server;
use crate::redis::value::Bytes;

pub(super) fn del(server: &mut Server, words: &[Bytes]) -> Outcome {
    let now = server.expiry_now();
    let mut removed = 0;
    for key in &words[1..] {
        if server.keys.live(key, now).is_some() {
            server.keys.remove(key);
            removed += 1;
        }
    }
    Ok(Reply::Int(removed))
}

pub(super) fn exists(server: &mut Server, words: &[Bytes]) -> Outcome {
    let now = server.expiry_now();
    let there = words[1..]
        .iter()
        .filter(|key| server.keys.live(key, now).is_some());
    Ok(Reply::count(there.count()))
}

pub(super) fn type_of(server: &mut Server, words: &[Bytes]) -> Outcome {
    let now = server.expiry_now();
    let name = server
        .keys
        .live(&words[1], now)
        .map_or("none", |entry| entry.value.type_name());
    Ok(Reply::Status(name.to_owned()))
}

pub(super) fn persist(server: &mut Server, words: &[Bytes]) -> Outcome {
    let now = server.expiry_now();
    let entry = server.keys.live(&words[1], now);
    Ok(Reply::flag(
        entry.is_some_and(|entry| entry.expires_at.take().is_some()),
    ))
}

pub(super) fn pttl(server: &mut Server, words: &[Bytes]) -> Outcome {
    time_left(server, &words[1], |left| left)
}

pub(super) fn ttl(server: &mut Server, words: &[Bytes]) -> Outcome {
    time_left(server, &words[1], |left| (left + 500) / 1_000)
}

fn time_left(server: &mut Server, key: &[u8], rounded: fn(i64) -> i64) -> Outcome {
    let (now, clock) = (server.expiry_now(), server.now());
    let Some(entry) = server.keys.live(key, now) else {
        return Ok(Reply::Int(-2));
    };
    // The clock may be past an expiry that the script does not see yet.
    let left = entry.expires_at.map(|at| rounded((at - clock).max(0)));
    Ok(Reply::Int(left.unwrap_or(-1)))
}

pub(super) fn pexpire_time(server: &mut Server, words: &[Bytes]) -> Outcome {
    let now = server.expiry_now();
    let Some(entry) = server.keys.live(&words[1], now) else {
        return Ok(Reply::Int(-2));
    };
    Ok(Reply::Int(entry.expires_at.unwrap_or(-1)))
}

pub(super) fn pexpire(server: &mut Server, words: &[Bytes]) -> Outcome {
    let base = server.now();
    set_expiry(server, words, "pexpire", 1, base)
}

pub(super) fn expire(server: &mut Server, words: &[Bytes]) -> Outcome {
    let base = server.now();
    set_expiry(server, words, "expire", 1_000, base)
}

pub(super) fn pexpire_at(server: &mut Server, words: &[Bytes]) -> Outcome {
    set_expiry(server, words, "pexpireat", 1, 0)
}

pub(super) fn expire_at(server: &mut Server, words: &[Bytes]) -> Outcome {
    set_expiry(server, words, "expireat", 1_000, 0)
}

/// The condition for setting an expiry.
#[derive(Default)]
struct Condition {
    none_yet: bool,
    some_already: bool,
    later: bool,
    sooner: bool,
}

impl Condition {
    fn parse(words: &[Bytes]) -> Result<Self, Refusal> {
        let mut condition = Self::default();
        for word in words {
            match word.to_ascii_uppercase().as_slice() {
                b"NX" => condition.none_yet = true,
                b"XX" => condition.some_already = true,
                b"GT" => condition.later = true,
                b"LT" => condition.sooner = true,
                _ => {
                    let word = String::from_utf8_lossy(word);
                    return Err(Refusal::Error(format!("ERR Unsupported option {word}")));
                }
            }
        }
        if condition.none_yet && (condition.some_already || condition.later || condition.sooner) {
            return Err(
                "ERR NX and XX, GT or LT options at the same time are not compatible".into(),
            );
        }
        if condition.later && condition.sooner {
            return Err("ERR GT and LT options at the same time are not compatible".into());
        }
        Ok(condition)
    }

    /// Whether it is met. No expiry counts as infinitely late.
    fn met(&self, current: Option<i64>, wanted: i64) -> bool {
        !(self.none_yet && current.is_some()
            || self.some_already && current.is_none()
            || self.later && current.is_none_or(|at| wanted <= at)
            || self.sooner && current.is_some_and(|at| wanted >= at))
    }
}

fn set_expiry(
    server: &mut Server,
    words: &[Bytes],
    command: &str,
    unit: i64,
    base: i64,
) -> Outcome {
    let condition = Condition::parse(&words[3..])?;
    let amount = integer_or_error(&words[2])?;
    let wanted = amount
        .checked_mul(unit)
        .and_then(|millis| millis.checked_add(base));
    let Some(wanted) = wanted else {
        return Err(Refusal::Error(format!(
            "ERR invalid expire time in '{command}' command"
        )));
    };
    let (now, clock) = (server.expiry_now(), server.now());
    let Some(entry) = server.keys.live(&words[1], now) else {
        return Ok(Reply::Int(0));
    };
    if !condition.met(entry.expires_at, wanted) {
        return Ok(Reply::Int(0));
    }
    entry.expires_at = Some(wanted);
    if wanted <= clock {
        server.keys.remove(&words[1]);
    }
    Ok(Reply::Int(1))
}
