//! `SCAN`: pages of keys in an order that depends only on each key. So a key that stays is on one
//! of the pages, even if other keys come and go meanwhile.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

use crate::redis::numbers::integer_or_error;
use crate::redis::reply::{Outcome, Refusal, Reply};
use crate::redis::server::Server;
use crate::redis::value::Bytes;

/// The default number of keys per page.
const COUNT: i64 = 10;

pub(super) fn scan(server: &mut Server, words: &[Bytes]) -> Outcome {
    let cursor = std::str::from_utf8(&words[1]).ok();
    let Some(cursor) = cursor.and_then(|text| text.parse::<u64>().ok()) else {
        return Err("ERR invalid cursor".into());
    };
    let (prefix, count) = options(&words[2..])?;
    let mut keys: Vec<_> = server
        .keys
        .iter(server.expiry_now())
        .map(|(key, _)| (place(key), key))
        .filter(|(place, _)| *place >= cursor)
        .collect();
    keys.sort_unstable();
    let next = keys.get(count).map_or(0, |(place, _)| *place);
    // Keys with the same place are on the same page.
    let page = keys.iter().take_while(|(at, _)| next == 0 || *at < next);
    let found = page.filter(|(_, key)| key.starts_with(&prefix));
    let found = found.map(|(_, key)| Reply::bulk(key.to_vec())).collect();
    Ok(Reply::Array(vec![
        Reply::bulk(next.to_string()),
        Reply::Array(found),
    ]))
}

/// The place of a key in the order. Never 0, which marks the end.
fn place(key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish().max(1)
}

/// The prefix of the keys, and the number per page.
fn options(words: &[Bytes]) -> Result<(Bytes, usize), Refusal> {
    let (mut prefix, mut count) = (Bytes::new(), COUNT);
    for option in words.chunks(2) {
        match option {
            [name, pattern] if name.eq_ignore_ascii_case(b"MATCH") => prefix = literal(pattern)?,
            [name, number] if name.eq_ignore_ascii_case(b"COUNT") => {
                count = integer_or_error(number)?.max(1);
            }
            _ => return Err(Refusal::Unsupported("this option of SCAN".to_owned())),
        }
    }
    Ok((prefix, usize::try_from(count).unwrap_or(usize::MAX)))
}

/// The text before the final `*`, the only wildcard that the model supports.
fn literal(pattern: &[u8]) -> Result<Bytes, Refusal> {
    let mut text = Bytes::new();
    let mut rest = pattern.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'\\' => text.extend(rest.next()),
            b'*' if rest.as_slice().is_empty() => return Ok(text),
            b'*' | b'?' | b'[' => break,
            other => text.push(*other),
        }
    }
    let what = format!("the pattern {:?}", String::from_utf8_lossy(pattern));
    Err(Refusal::Unsupported(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(server: &mut Server, words: &[&str]) -> Reply {
        let words: Vec<_> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        server.command(&words).unwrap()
    }

    #[test]
    fn every_key_is_in_one_page() {
        let mut server = Server::default();
        for key in 0..100 {
            let name = if key % 2 == 0 { "a*" } else { "b" };
            ask(&mut server, &["SET", &format!("{name}{key}"), "1"]);
        }
        let (mut cursor, mut found) = ("0".to_owned(), Vec::new());
        loop {
            let page = ask(
                &mut server,
                &["SCAN", &cursor, "MATCH", "a\\**", "COUNT", "7"],
            );
            let [next, keys] = page.items() else {
                panic!("{page:?}")
            };
            found.extend(keys.items().iter().map(|key| key.bytes().to_vec()));
            cursor = String::from_utf8(next.bytes().to_vec()).unwrap();
            if cursor == "0" {
                break;
            }
        }
        found.sort();
        found.dedup();
        assert_eq!(found.len(), 50);
    }
}
