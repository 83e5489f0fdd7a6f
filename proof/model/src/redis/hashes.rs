//! Commands on hashes.

use crate::redis::numbers::{integer, integer_or_error};
use crate::redis::reply::{Outcome, Refusal, Reply, SYNTAX};
use crate::redis::server::Server;
use crate::redis::value::Bytes;

type Fields = Vec<(Bytes, Bytes)>;

fn fields<'a>(server: &'a mut Server, key: &[u8]) -> Result<&'a [(Bytes, Bytes)], Refusal> {
    let now = server.expiry_now();
    Ok(server.keys.hash(key, now)?.map_or(&[], Fields::as_slice))
}

fn field<'a>(fields: &'a [(Bytes, Bytes)], name: &[u8]) -> Option<&'a Bytes> {
    fields
        .iter()
        .find(|(field, _)| field == name)
        .map(|(_, value)| value)
}

fn put(fields: &mut Fields, name: &[u8], value: &[u8]) -> bool {
    if let Some((_, old)) = fields.iter_mut().find(|(field, _)| field == name) {
        *old = value.to_vec();
        return false;
    }
    fields.push((name.to_vec(), value.to_vec()));
    true
}

pub(super) fn get(server: &mut Server, words: &[Bytes]) -> Outcome {
    Ok(Reply::bulk_or_nil(field(
        fields(server, &words[1])?,
        &words[2],
    )))
}

pub(super) fn get_many(server: &mut Server, words: &[Bytes]) -> Outcome {
    let fields = fields(server, &words[1])?;
    let values = words[2..]
        .iter()
        .map(|name| Reply::bulk_or_nil(field(fields, name)));
    Ok(Reply::Array(values.collect()))
}

pub(super) fn get_all(server: &mut Server, words: &[Bytes]) -> Outcome {
    Ok(Reply::Array(flat(fields(server, &words[1])?)))
}

fn flat(fields: &[(Bytes, Bytes)]) -> Vec<Reply> {
    let pairs = fields.iter().flat_map(|(name, value)| [name, value]);
    pairs.map(|text| Reply::bulk(text.clone())).collect()
}

pub(super) fn keys(server: &mut Server, words: &[Bytes]) -> Outcome {
    let names = fields(server, &words[1])?
        .iter()
        .map(|(name, _)| Reply::bulk(name.clone()));
    Ok(Reply::Array(names.collect()))
}

pub(super) fn values(server: &mut Server, words: &[Bytes]) -> Outcome {
    let values = fields(server, &words[1])?
        .iter()
        .map(|(_, value)| Reply::bulk(value.clone()));
    Ok(Reply::Array(values.collect()))
}

pub(super) fn len(server: &mut Server, words: &[Bytes]) -> Outcome {
    Ok(Reply::count(fields(server, &words[1])?.len()))
}

pub(super) fn exists(server: &mut Server, words: &[Bytes]) -> Outcome {
    Ok(Reply::flag(
        field(fields(server, &words[1])?, &words[2]).is_some(),
    ))
}

/// Returns everything at once, as a server does for a small hash.
pub(super) fn scan(server: &mut Server, words: &[Bytes]) -> Outcome {
    if words[2] != b"0" {
        return Err(Refusal::Unsupported(
            "HSCAN that goes on from a cursor".to_owned(),
        ));
    }
    match words.get(3..).unwrap_or_default() {
        [] => {}
        [option, count] if option.eq_ignore_ascii_case(b"COUNT") => {
            if integer_or_error(count)? < 1 {
                return Err(SYNTAX.into());
            }
        }
        _ => return Err(Refusal::Unsupported("HSCAN with MATCH".to_owned())),
    }
    let found = Reply::Array(flat(fields(server, &words[1])?));
    Ok(Reply::Array(vec![Reply::bulk(*b"0"), found]))
}

pub(super) fn set(server: &mut Server, words: &[Bytes]) -> Outcome {
    if !words.len().is_multiple_of(2) {
        return Err("ERR wrong number of arguments for 'hset' command".into());
    }
    let now = server.expiry_now();
    let fields = server.keys.hash_mut(&words[1], now)?;
    let added = words[2..]
        .chunks_exact(2)
        .filter(|pair| put(fields, &pair[0], &pair[1]));
    Ok(Reply::count(added.count()))
}

pub(super) fn set_new(server: &mut Server, words: &[Bytes]) -> Outcome {
    if field(fields(server, &words[1])?, &words[2]).is_some() {
        return Ok(Reply::Int(0));
    }
    let now = server.expiry_now();
    put(server.keys.hash_mut(&words[1], now)?, &words[2], &words[3]);
    Ok(Reply::Int(1))
}

pub(super) fn incr_by(server: &mut Server, words: &[Bytes]) -> Outcome {
    let amount = integer_or_error(&words[3])?;
    let old = match field(fields(server, &words[1])?, &words[2]) {
        Some(text) => integer(text).ok_or("ERR hash value is not an integer")?,
        None => 0,
    };
    let sum = old
        .checked_add(amount)
        .ok_or("ERR increment or decrement would overflow")?;
    let now = server.expiry_now();
    let fields = server.keys.hash_mut(&words[1], now)?;
    put(fields, &words[2], sum.to_string().as_bytes());
    Ok(Reply::Int(sum))
}

pub(super) fn del(server: &mut Server, words: &[Bytes]) -> Outcome {
    let before = fields(server, &words[1])?.len();
    if before == 0 {
        return Ok(Reply::Int(0));
    }
    let now = server.expiry_now();
    let fields = server.keys.hash_mut(&words[1], now)?;
    fields.retain(|(name, _)| !words[2..].contains(name));
    let removed = before - fields.len();
    server.keys.drop_if_empty(&words[1]);
    Ok(Reply::count(removed))
}
