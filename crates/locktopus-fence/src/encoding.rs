//! A fence as one word of text, and back.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use locktopus_contract::{FencingToken, LockName};

use crate::fence::{Fence, FencedLock};
use crate::mark::HolderMark;

const VERSION: &str = "locktopus-fence1";
const LONGEST_KIND: usize = 32;

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = URL_SAFE_NO_PAD.encode(self.lock.name.as_str());
        write!(f, "{VERSION}.{}.{name}.{}", self.lock.kind, self.token)?;
        self.holder.map_or(Ok(()), |holder| write!(f, ".{holder}"))
    }
}

/// The text is not a fence.
///
/// ```
/// use locktopus::{Fence, FenceParseError};
/// let error: FenceParseError = "locktopus-fence1.lock".parse::<Fence>().unwrap_err();
/// println!("the header has no fence: {error}");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the text starting {start:?} is no fence: {problem}")]
pub struct FenceParseError {
    start: String,
    problem: &'static str,
}

/// Accepts exactly the output of `Display`. A fence has only one text, so you may compare texts
/// instead of fences.
impl FromStr for Fence {
    type Err = FenceParseError;

    fn from_str(text: &str) -> Result<Self, FenceParseError> {
        parse(text).map_err(|problem| FenceParseError {
            start: text.chars().take(64).collect(),
            problem,
        })
    }
}

fn parse(text: &str) -> Result<Fence, &'static str> {
    let mut parts = text.split('.');
    if parts.next() != Some(VERSION) {
        return Err("it does not begin with \"locktopus-fence1.\"");
    }
    let kind = parts.next().filter(|kind| is_kind(kind));
    let kind = kind.ok_or("the kind of lock is missing or damaged")?;
    let name = parts.next().and_then(name);
    let name = name.ok_or("the name of the lock is missing or damaged")?;
    let token = parts.next().and_then(token);
    let token = token.ok_or("the token is missing or not a number from 1 to 2^53 - 1")?;
    let holder = match parts.next() {
        None => None,
        Some(mark) => Some(HolderMark::parse(mark).ok_or("the holder's mark is damaged")?),
    };
    if parts.next().is_some() {
        return Err("there is something behind its end");
    }
    let kind = kind.to_owned().into();
    Ok(Fence {
        lock: FencedLock { kind, name },
        token,
        holder,
    })
}

fn is_kind(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=LONGEST_KIND).contains(&text.len()) && text.bytes().all(word)
}

fn name(text: &str) -> Option<LockName> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
    LockName::new(std::str::from_utf8(&bytes).ok()?).ok()
}

fn token(text: &str) -> Option<FencingToken> {
    // `parse` would also accept a sign and leading zeros.
    let canonical = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    let number = text.parse().ok().filter(|_| canonical)?;
    FencingToken::new(number)
}
