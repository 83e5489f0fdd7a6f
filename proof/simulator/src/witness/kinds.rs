//! Names in use as another kind: a script may change nothing, and must report the conflict.

use std::collections::BTreeMap;

use locktopus_core::{LockKind, LockName, LockTarget, OwnerId};
use locktopus_model::layout::{Kind, Layout};
use locktopus_model::redis::{Reply, Server, Value};
use locktopus_protocol::Keys;

use super::call::{kind, plain};

/// The names used as several kinds, each with its keys as a read-write lock.
#[derive(Debug, Default)]
pub(crate) struct Names(BTreeMap<Vec<u8>, Vec<String>>);

/// The use of a name, from the view of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Used {
    /// As the script's own kind, or not at all.
    Mine,
    Other(&'static str),
    Unknown,
}

/// A latch, which no layout knows.
const LATCH: &str = "latch";

impl Names {
    /// The names that are used as several kinds.
    pub(crate) fn of<'a>(mixed: impl Iterator<Item = &'a str>) -> Self {
        let names = mixed.filter_map(|name| {
            let target = LockTarget::new(LockName::new(name).ok()?, LockKind::Write);
            Some((name.as_bytes().to_vec(), Keys::of(&target).names))
        });
        Self(names.collect())
    }

    /// Whether a name is used as several kinds.
    pub(super) fn is_mixed(&self, name: &[u8]) -> bool {
        self.0.contains_key(name)
    }

    /// The use of the name in a script's first key.
    pub(super) fn used(&self, script: &str, keys: &[Vec<u8>], server: &Server) -> Used {
        let Some((name, read_write)) = keys.first().and_then(|name| self.0.get_key_value(name))
        else {
            return Used::Mine;
        };
        // A script under quarantine reports no kind until the quarantine is over. Groups,
        // extensions and `_linger` scripts serve several kinds.
        let name_of = plain(script);
        let several = name_of.ends_with("_linger") || name_of.ends_with("_extend");
        let mine = match kind(name_of) {
            _ if name_of.starts_with("latch") => LATCH,
            Some(kind) if !several && name_of == script => word(kind),
            _ => return Used::Unknown,
        };
        if server.keys.peek(name, server.now()).is_none() {
            return Used::Mine;
        }
        match in_use_as(name, read_write, server) {
            Some(found) if found == mine => Used::Mine,
            Some(found) => Used::Other(found),
            None => Used::Unknown,
        }
    }
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Lock => "lock",
        Kind::Mutex => "mutex",
        Kind::Fair => "fair lock",
        Kind::ReadWrite => "read-write lock",
        Kind::Semaphore => "semaphore",
        Kind::Permits => "semaphore of permits with ids",
    }
}

/// The kind that a name is in use as, if that is certain.
fn in_use_as(name: &[u8], read_write: &[String], server: &Server) -> Option<&'static str> {
    let entry = server.keys.peek(name, server.now())?;
    match &entry.value {
        Value::Text(text) if text.len() < 18 => {
            let tag = if name.contains(&b'{') {
                String::from_utf8_lossy(name).into_owned()
            } else {
                format!("{{{}}}", String::from_utf8_lossy(name))
            };
            let mark = format!("locktopus_kind:{tag}");
            let Value::Text(mark) = &server.keys.peek(mark.as_bytes(), server.now())?.value else {
                return None;
            };
            // The number of permits follows the word.
            match mark.split(|byte| *byte == b' ').next()? {
                b"semaphore" => Some(word(Kind::Semaphore)),
                b"permit_semaphore" => Some(word(Kind::Permits)),
                b"latch" => Some(LATCH),
                _ => None,
            }
        }
        Value::Text(_) => Some(word(Kind::Mutex)),
        Value::Hash(fields) if fields.iter().any(|(field, _)| field == b"mode") => {
            let keys = read_write.iter().map(|key| key.clone().into_bytes());
            let layout = Layout::new(Kind::ReadWrite, keys.collect());
            let live = layout.holders(server).iter().any(|holder| !holder.over);
            live.then(|| word(Kind::ReadWrite))
        }
        Value::Hash(fields) => {
            let (owner, _) = fields.first()?;
            let native = OwnerId::from_bytes(owner.as_slice()).is_native();
            let odd = owner.last().is_some_and(|digit| digit % 2 == 1);
            native.then(|| word(if odd { Kind::Fair } else { Kind::Lock }))
        }
        _ => None,
    }
}

/// The keys that a script of another kind may not change: all that existed when it began. A key
/// that expires while the script runs is still stored. A release may give up a place in its own
/// queue, so only its first key counts.
pub(super) fn picture(
    script: &str,
    keys: &[Vec<u8>],
    (server, begun): (&Server, i64),
) -> Vec<(String, String)> {
    let lines = server.keys.iter(begun).map(|(key, entry)| {
        let value = format!("{} {:?}", entry.value, entry.expires_at);
        (String::from_utf8_lossy(key).into_owned(), value)
    });
    let mut picture: Vec<_> = lines.collect();
    if let (true, Some(name)) = (script.ends_with("_release"), keys.first()) {
        let name = String::from_utf8_lossy(name);
        picture.retain(|(key, _)| *key == name);
    }
    picture
}

/// The stored reply of an operation on a number. It was done when the name was its own, and the
/// client may ask again if it missed the reply.
pub(super) fn answered(keys: &[Vec<u8>], server: &Server) -> Option<String> {
    let key = keys
        .iter()
        .find(|key| key.starts_with(b"locktopus_done:"))?;
    match &server.keys.peek(key, server.now())?.value {
        Value::Text(answer) => Some(String::from_utf8_lossy(answer).into_owned()),
        _ => None,
    }
}

/// Whether the reply is the stored one of an operation that was done when the name was its own.
pub(super) fn is_told_again(answer: &str, reply: &Reply) -> bool {
    let words = reply.items().iter().map(|item| match item {
        Reply::Int(number) => number.to_string(),
        item => String::from_utf8_lossy(item.bytes()).into_owned(),
    });
    is_refused(reply) || words.collect::<Vec<_>>().join(" ") == answer
}

/// Every script fails like this without memory, replicas or a primary.
fn is_refused(reply: &Reply) -> bool {
    let Reply::Error(line) = reply else {
        return false;
    };
    let told = ["OOM ", "NOREPLICAS ", "READONLY "];
    told.iter().any(|code| line.starts_with(code))
}

/// Whether the reply turns away a caller that uses the name as another kind.
pub(super) fn is_turned_away(script: &str, reply: &Reply) -> bool {
    if let Reply::Error(line) = reply {
        return is_refused(reply) || line.starts_with("WRONGKIND ");
    }
    let code = reply.items().first().and_then(Reply::as_int);
    // The code of a request that comes too late is the same.
    let turned_away = if script.ends_with("_release") { 0 } else { 2 };
    code == Some(turned_away)
}
