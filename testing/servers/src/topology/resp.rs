//! Server replies and the parser for them.
//!
//! The harness talks to servers directly, so that it never depends on the clients under test.

/// One reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resp {
    /// A status line.
    Simple(String),
    /// An error line.
    Error(String),
    /// An integer.
    Int(i64),
    /// A byte string.
    Bulk(Vec<u8>),
    /// No value.
    Nil,
    /// A list.
    Array(Vec<Self>),
}

/// Replies nested deeper than this come from a confused peer.
const MAX_DEPTH: u8 = 16;

impl Resp {
    /// The reply as text; lists are empty.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Simple(text) | Self::Error(text) => text.clone(),
            Self::Int(number) => number.to_string(),
            Self::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Self::Nil | Self::Array(_) => String::new(),
        }
    }

    /// The elements of a list; empty for anything else.
    #[must_use]
    pub fn items(&self) -> &[Self] {
        match self {
            Self::Array(items) => items,
            Self::Simple(_) | Self::Error(_) | Self::Int(_) | Self::Bulk(_) | Self::Nil => &[],
        }
    }

    /// The value after `key` in a flat list of pairs.
    #[must_use]
    pub fn field(&self, key: &str) -> Option<String> {
        self.items()
            .chunks_exact(2)
            .find(|pair| pair[0].text() == key)
            .map(|pair| pair[1].text())
    }
}

/// Encodes a command.
pub(crate) fn encode(words: &[&str]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    out
}

/// Takes one reply from the start of `input`: `Ok(None)` when more bytes are needed.
pub(crate) fn parse(input: &[u8]) -> Result<Option<Resp>, String> {
    Ok(value(input, MAX_DEPTH)?.map(|(reply, _)| reply))
}

type Parsed<T> = Result<Option<(T, usize)>, String>;

fn line(input: &[u8]) -> Option<(&[u8], usize)> {
    let end = input.windows(2).position(|pair| pair == b"\r\n")?;
    Some((&input[..end], end + 2))
}

fn number(digits: &[u8]) -> Result<i64, String> {
    std::str::from_utf8(digits)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| format!("not a number: {:?}", String::from_utf8_lossy(digits)))
}

fn value(input: &[u8], depth: u8) -> Parsed<Resp> {
    let Some((head, used)) = line(input) else {
        return Ok(None);
    };
    let Some((&mark, rest)) = head.split_first() else {
        return Err("empty reply line".to_owned());
    };
    let text = || String::from_utf8_lossy(rest).into_owned();
    match mark {
        b'+' => Ok(Some((Resp::Simple(text()), used))),
        b'-' => Ok(Some((Resp::Error(text()), used))),
        b':' => Ok(Some((Resp::Int(number(rest)?), used))),
        b'$' => bulk(&input[used..], number(rest)?, used),
        b'*' => list(&input[used..], number(rest)?, used, depth),
        other => Err(format!("unknown reply type {:?}", char::from(other))),
    }
}

fn bulk(body: &[u8], length: i64, used: usize) -> Parsed<Resp> {
    let Ok(length) = usize::try_from(length) else {
        return Ok(Some((Resp::Nil, used)));
    };
    if body.len() < length.saturating_add(2) {
        return Ok(None);
    }
    Ok(Some((
        Resp::Bulk(body[..length].to_vec()),
        used + length + 2,
    )))
}

fn list(body: &[u8], count: i64, used: usize, depth: u8) -> Parsed<Resp> {
    let Ok(count) = usize::try_from(count) else {
        return Ok(Some((Resp::Nil, used)));
    };
    let Some(depth) = depth.checked_sub(1) else {
        return Err("reply nested too deeply".to_owned());
    };
    let mut items = Vec::new();
    let mut at = 0;
    for _ in 0..count {
        let Some((item, more)) = value(&body[at..], depth)? else {
            return Ok(None);
        };
        items.push(item);
        at += more;
    }
    Ok(Some((Resp::Array(items), used + at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_prefix_asks_for_more_and_the_whole_parses() {
        let whole = b"*4\r\n$5\r\nhe\r\nl\r\n:-7\r\n*1\r\n+OK\r\n$-1\r\n";
        for end in 0..whole.len() {
            assert_eq!(parse(&whole[..end]), Ok(None), "{end}");
        }
        let expected = Resp::Array(vec![
            Resp::Bulk(b"he\r\nl".to_vec()),
            Resp::Int(-7),
            Resp::Array(vec![Resp::Simple("OK".into())]),
            Resp::Nil,
        ]);
        assert_eq!(parse(whole), Ok(Some(expected)));
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(parse(b"HTTP/1.1 200\r\n").is_err());
        assert!(parse(&b"*1\r\n".repeat(40)).is_err());
    }
}
