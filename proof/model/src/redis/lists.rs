//! Commands on lists.

use std::collections::VecDeque;

use crate::redis::numbers::{integer, integer_or_error};
use crate::redis::reply::{Outcome, Refusal, Reply, SYNTAX};
use crate::redis::server::Server;
use crate::redis::value::Bytes;

fn items<'a>(server: &'a mut Server, key: &[u8]) -> Result<Option<&'a VecDeque<Bytes>>, Refusal> {
    let now = server.expiry_now();
    server.keys.list(key, now)
}

pub(super) fn push_left(server: &mut Server, words: &[Bytes]) -> Outcome {
    let now = server.expiry_now();
    let list = server.keys.list_mut(&words[1], now)?;
    words[2..]
        .iter()
        .for_each(|item| list.push_front(item.clone()));
    Ok(Reply::count(list.len()))
}

pub(super) fn push_right(server: &mut Server, words: &[Bytes]) -> Outcome {
    let now = server.expiry_now();
    let list = server.keys.list_mut(&words[1], now)?;
    words[2..]
        .iter()
        .for_each(|item| list.push_back(item.clone()));
    Ok(Reply::count(list.len()))
}

pub(super) fn pop_left(server: &mut Server, words: &[Bytes]) -> Outcome {
    pop(server, words, "lpop", VecDeque::pop_front)
}

pub(super) fn pop_right(server: &mut Server, words: &[Bytes]) -> Outcome {
    pop(server, words, "rpop", VecDeque::pop_back)
}

fn pop(
    server: &mut Server,
    words: &[Bytes],
    command: &str,
    take: fn(&mut VecDeque<Bytes>) -> Option<Bytes>,
) -> Outcome {
    let wanted = match &words[2..] {
        [] => None,
        [count] => {
            let count = integer(count).and_then(|count| usize::try_from(count).ok());
            Some(count.ok_or("ERR value is out of range, must be positive")?)
        }
        _ => {
            let error = format!("ERR wrong number of arguments for '{command}' command");
            return Err(Refusal::Error(error));
        }
    };
    let Some(length) = items(server, &words[1])?.map(VecDeque::len) else {
        return Ok(Reply::Nil);
    };
    let now = server.expiry_now();
    let list = server.keys.list_mut(&words[1], now)?;
    let reply = match wanted {
        None => Reply::bulk_or_nil(take(list).as_ref()),
        Some(count) => {
            let taken = (0..count.min(length))
                .filter_map(|_| take(list))
                .map(Reply::Bulk);
            Reply::Array(taken.collect())
        }
    };
    server.keys.drop_if_empty(&words[1]);
    Ok(reply)
}

pub(super) fn len(server: &mut Server, words: &[Bytes]) -> Outcome {
    Ok(Reply::count(
        items(server, &words[1])?.map_or(0, VecDeque::len),
    ))
}

/// Turns positions that may count from the end into a range.
pub(super) fn bounds(start: i64, stop: i64, length: usize) -> std::ops::Range<usize> {
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let from = |place: i64| {
        if place < 0 {
            place.saturating_add(length)
        } else {
            place
        }
    };
    let (start, stop) = (from(start).max(0), from(stop).min(length - 1));
    if start > stop {
        return 0..0;
    }
    let place = |place: i64| usize::try_from(place).unwrap_or(0);
    place(start)..place(stop) + 1
}

pub(super) fn range(server: &mut Server, words: &[Bytes]) -> Outcome {
    let (start, stop) = (integer_or_error(&words[2])?, integer_or_error(&words[3])?);
    let Some(list) = items(server, &words[1])? else {
        return Ok(Reply::Array(Vec::new()));
    };
    let range = bounds(start, stop, list.len());
    Ok(Reply::Array(
        list.range(range).cloned().map(Reply::Bulk).collect(),
    ))
}

pub(super) fn index(server: &mut Server, words: &[Bytes]) -> Outcome {
    // The server looks up the list before it parses the number.
    let list = items(server, &words[1])?;
    let Some(list) = list else {
        return Ok(Reply::Nil);
    };
    let place = integer_or_error(&words[2])?;
    let place = if place < 0 {
        usize::try_from(place.unsigned_abs())
            .ok()
            .and_then(|back| list.len().checked_sub(back))
    } else {
        usize::try_from(place).ok()
    };
    Ok(Reply::bulk_or_nil(place.and_then(|place| list.get(place))))
}

pub(super) fn insert(server: &mut Server, words: &[Bytes]) -> Outcome {
    let behind = match words[2].to_ascii_uppercase().as_slice() {
        b"BEFORE" => 0,
        b"AFTER" => 1,
        _ => return Err(SYNTAX.into()),
    };
    let Some(list) = items(server, &words[1])? else {
        return Ok(Reply::Int(0));
    };
    let Some(place) = list.iter().position(|item| *item == words[3]) else {
        return Ok(Reply::Int(-1));
    };
    let now = server.expiry_now();
    let list = server.keys.list_mut(&words[1], now)?;
    list.insert(place + behind, words[4].clone());
    Ok(Reply::count(list.len()))
}

pub(super) fn remove(server: &mut Server, words: &[Bytes]) -> Outcome {
    let count = integer_or_error(&words[2])?;
    if items(server, &words[1])?.is_none() {
        return Ok(Reply::Int(0));
    }
    let now = server.expiry_now();
    let list = server.keys.list_mut(&words[1], now)?;
    let limit = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let limit = if count == 0 { usize::MAX } else { limit };
    let places = list
        .iter()
        .enumerate()
        .filter(|(_, item)| **item == words[3]);
    let mut places: Vec<usize> = places.map(|(place, _)| place).collect();
    if count < 0 {
        places.reverse();
    }
    places.truncate(limit);
    places.sort_unstable();
    for place in places.iter().rev() {
        list.remove(*place);
    }
    server.keys.drop_if_empty(&words[1]);
    Ok(Reply::count(places.len()))
}

/// The options of `LPOS`.
struct Search {
    rank: i64,
    count: Option<usize>,
    at_most: usize,
}

impl Search {
    fn parse(words: &[Bytes]) -> Result<Self, Refusal> {
        let mut search = Self {
            rank: 1,
            count: None,
            at_most: 0,
        };
        for pair in words.chunks(2) {
            let [option, value] = pair else {
                return Err(SYNTAX.into());
            };
            let natural = |error: &'static str| {
                integer(value)
                    .and_then(|number| usize::try_from(number).ok())
                    .ok_or_else(|| Refusal::from(error))
            };
            match option.to_ascii_uppercase().as_slice() {
                b"RANK" => {
                    search.rank = integer_or_error(value)?;
                    if search.rank == 0 {
                        return Err(RANK_IS_ZERO.into());
                    }
                }
                b"COUNT" => search.count = Some(natural("ERR COUNT can't be negative")?),
                b"MAXLEN" => search.at_most = natural("ERR MAXLEN can't be negative")?,
                _ => return Err(SYNTAX.into()),
            }
        }
        Ok(search)
    }
}

const RANK_IS_ZERO: &str = "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list";

pub(super) fn position(server: &mut Server, words: &[Bytes]) -> Outcome {
    let search = Search::parse(&words[3..])?;
    let nothing = || {
        search
            .count
            .map_or(Reply::Nil, |_| Reply::Array(Vec::new()))
    };
    let Some(list) = items(server, &words[1])? else {
        return Ok(nothing());
    };
    let mut places: Vec<usize> = (0..list.len()).collect();
    if search.rank < 0 {
        places.reverse();
    }
    if search.at_most > 0 {
        places.truncate(search.at_most);
    }
    places.retain(|place| list[*place] == words[2]);
    let skipped = usize::try_from(search.rank.unsigned_abs() - 1).unwrap_or(usize::MAX);
    let mut found = places.into_iter().skip(skipped).map(Reply::count);
    match search.count {
        None => Ok(found.next().unwrap_or(Reply::Nil)),
        Some(0) => Ok(Reply::Array(found.collect())),
        Some(count) => Ok(Reply::Array(found.take(count).collect())),
    }
}
