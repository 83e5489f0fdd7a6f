//! Commands on sets.

use std::collections::BTreeSet;

use crate::redis::reply::{Outcome, Reply};
use crate::redis::server::Server;
use crate::redis::value::Bytes;

pub(super) fn add(server: &mut Server, words: &[Bytes]) -> Outcome {
    let now = server.expiry_now();
    let set = server.keys.set_mut(&words[1], now)?;
    let added = words[2..]
        .iter()
        .filter(|member| set.insert((*member).clone()));
    Ok(Reply::count(added.count()))
}

pub(super) fn remove(server: &mut Server, words: &[Bytes]) -> Outcome {
    let now = server.expiry_now();
    if server.keys.set(&words[1], now)?.is_none() {
        return Ok(Reply::Int(0));
    }
    let set = server.keys.set_mut(&words[1], now)?;
    let removed = words[2..]
        .iter()
        .filter(|member| set.remove(*member))
        .count();
    server.keys.drop_if_empty(&words[1]);
    Ok(Reply::count(removed))
}

pub(super) fn len(server: &mut Server, words: &[Bytes]) -> Outcome {
    let now = server.expiry_now();
    let set = server.keys.set(&words[1], now)?;
    Ok(Reply::count(set.map_or(0, BTreeSet::len)))
}

pub(super) fn contains(server: &mut Server, words: &[Bytes]) -> Outcome {
    let now = server.expiry_now();
    let set = server.keys.set(&words[1], now)?;
    Ok(Reply::flag(set.is_some_and(|set| set.contains(&words[2]))))
}

pub(super) fn members(server: &mut Server, words: &[Bytes]) -> Outcome {
    let now = server.expiry_now();
    let set = server.keys.set(&words[1], now)?;
    let members = set.into_iter().flatten().cloned().map(Reply::Bulk);
    Ok(Reply::Array(members.collect()))
}
