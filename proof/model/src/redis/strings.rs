//! Commands on strings.

use crate::redis::numbers::{integer, integer_or_error};
use crate::redis::reply::{NOT_AN_INTEGER, Outcome, Refusal, Reply, SYNTAX};
use crate::redis::server::Server;
use crate::redis::value::{Bytes, Entry, Value};

const OVERFLOW: &str = "ERR increment or decrement would overflow";

pub(super) fn get(server: &mut Server, words: &[Bytes]) -> Outcome {
    let now = server.expiry_now();
    Ok(Reply::bulk_or_nil(server.keys.text(&words[1], now)?))
}

pub(super) fn get_del(server: &mut Server, words: &[Bytes]) -> Outcome {
    let value = get(server, words)?;
    server.keys.remove(&words[1]);
    Ok(value)
}

pub(super) fn len(server: &mut Server, words: &[Bytes]) -> Outcome {
    let now = server.expiry_now();
    let value = server.keys.text(&words[1], now)?;
    Ok(Reply::count(value.map_or(0, Vec::len)))
}

/// The options of `SET`.
#[derive(Default)]
struct SetOptions {
    only_new: bool,
    only_old: bool,
    keep_expiry: bool,
    get: bool,
    expiry: Option<(Expiry, Bytes)>,
}

#[derive(Clone, Copy, PartialEq)]
struct Expiry {
    unit: i64,
    absolute: bool,
}

impl SetOptions {
    fn parse(words: &[Bytes]) -> Result<Self, Refusal> {
        let mut options = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let expiry = |unit, absolute| Some(Expiry { unit, absolute });
            let expiry = match word.to_ascii_uppercase().as_slice() {
                b"NX" if !options.only_old => {
                    options.only_new = true;
                    None
                }
                b"XX" if !options.only_new => {
                    options.only_old = true;
                    None
                }
                b"GET" => {
                    options.get = true;
                    None
                }
                b"KEEPTTL" if options.expiry.is_none() => {
                    options.keep_expiry = true;
                    None
                }
                b"EX" => expiry(1_000, false),
                b"PX" => expiry(1, false),
                b"EXAT" => expiry(1_000, true),
                b"PXAT" => expiry(1, true),
                _ => return Err(SYNTAX.into()),
            };
            if let Some(expiry) = expiry {
                // The same option may occur twice; the last one counts.
                let other = options
                    .expiry
                    .as_ref()
                    .is_some_and(|(before, _)| *before != expiry);
                let usable = !options.keep_expiry && !other;
                let value = words.next().filter(|_| usable).ok_or(SYNTAX)?;
                options.expiry = Some((expiry, value.clone()));
            }
        }
        Ok(options)
    }
}

pub(super) fn set(server: &mut Server, words: &[Bytes]) -> Outcome {
    let options = SetOptions::parse(&words[3..])?;
    let expires_at = match &options.expiry {
        Some((expiry, value)) => Some(expiry_at(server, "set", *expiry, value)?),
        None => None,
    };
    let (key, now) = (&words[1], server.expiry_now());
    let previous = if options.get {
        Some(Reply::bulk_or_nil(server.keys.text(key, now)?))
    } else {
        None
    };
    let old = server.keys.live(key, now);
    if (options.only_new && old.is_some()) || (options.only_old && old.is_none()) {
        return Ok(previous.unwrap_or(Reply::Nil));
    }
    let kept = old
        .and_then(|entry| entry.expires_at)
        .filter(|_| options.keep_expiry);
    let entry = Entry {
        value: Value::Text(words[2].clone()),
        expires_at: expires_at.or(kept),
    };
    server.keys.put(key, entry);
    Ok(previous.unwrap_or_else(Reply::ok))
}

fn expiry_at(server: &Server, command: &str, expiry: Expiry, value: &[u8]) -> Result<i64, Refusal> {
    let invalid = || Refusal::Error(format!("ERR invalid expire time in '{command}' command"));
    let amount = integer_or_error(value)?;
    if amount <= 0 {
        return Err(invalid());
    }
    let millis = amount.checked_mul(expiry.unit).ok_or_else(invalid)?;
    let base = if expiry.absolute { 0 } else { server.now() };
    millis.checked_add(base).ok_or_else(invalid)
}

pub(super) fn set_new(server: &mut Server, words: &[Bytes]) -> Outcome {
    let (key, now) = (&words[1], server.expiry_now());
    if server.keys.live(key, now).is_some() {
        return Ok(Reply::Int(0));
    }
    let value = Value::Text(words[2].clone());
    server.keys.put(
        key,
        Entry {
            value,
            expires_at: None,
        },
    );
    Ok(Reply::Int(1))
}

pub(super) fn set_expiring_millis(server: &mut Server, words: &[Bytes]) -> Outcome {
    set_expiring(server, "psetex", 1, words)
}

pub(super) fn set_expiring_seconds(server: &mut Server, words: &[Bytes]) -> Outcome {
    set_expiring(server, "setex", 1_000, words)
}

fn set_expiring(server: &mut Server, command: &str, unit: i64, words: &[Bytes]) -> Outcome {
    let expiry = Expiry {
        unit,
        absolute: false,
    };
    let expires_at = Some(expiry_at(server, command, expiry, &words[2])?);
    let value = Value::Text(words[3].clone());
    server.keys.put(&words[1], Entry { value, expires_at });
    Ok(Reply::ok())
}

pub(super) fn incr(server: &mut Server, words: &[Bytes]) -> Outcome {
    add(server, &words[1], 1)
}

pub(super) fn decr(server: &mut Server, words: &[Bytes]) -> Outcome {
    add(server, &words[1], -1)
}

pub(super) fn incr_by(server: &mut Server, words: &[Bytes]) -> Outcome {
    let amount = integer_or_error(&words[2])?;
    add(server, &words[1], amount)
}

pub(super) fn decr_by(server: &mut Server, words: &[Bytes]) -> Outcome {
    let amount = integer_or_error(&words[2])?;
    let amount = amount.checked_neg().ok_or("ERR decrement would overflow")?;
    add(server, &words[1], amount)
}

fn add(server: &mut Server, key: &[u8], amount: i64) -> Outcome {
    let now = server.expiry_now();
    let old = match server.keys.text(key, now)? {
        Some(text) => integer(text).ok_or(NOT_AN_INTEGER)?,
        None => 0,
    };
    let sum = old.checked_add(amount).ok_or(OVERFLOW)?;
    *server.keys.text_mut(key, now)? = sum.to_string().into_bytes();
    Ok(Reply::Int(sum))
}
