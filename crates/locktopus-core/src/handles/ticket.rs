//! Tickets: a live lease on its way to another process.

use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use locktopus_contract::{FencingToken, LockTarget, MAX_PERMITS, OwnerId};

use crate::engine::error::LockError;
use crate::engine::holding::turn::Turn;

/// A lease that is no longer renewed, ready to be [adopted](crate::LockRequest::adopt).
///
/// A ticket is enough to take over or release the lock, so treat its text as a secret. `Debug` does
/// not show it. Dropping a ticket does nothing; the lock becomes free when the lease ends. Adopt a
/// ticket only once: two guards made from copies of it would rely on the same lease, and the first
/// release would end both. For a mutex, adopt it with the profile it was acquired with.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let locks = locktopus::connect("memory:").await?;
/// use locktopus::LeaseTicket;
/// let guard = locks.lock("upload:7").acquire().await?;
/// let token = guard.token();
/// let ticket = guard.into_ticket().expect("held by this guard alone");
/// assert_eq!((ticket.token(), ticket.permits()), (token, 1));
/// let received: LeaseTicket = ticket.expose().parse()?; // in another process
/// assert!(received == ticket);
/// # Ok(()) }
/// ```
#[must_use = "nobody renews the lease of a ticket; adopt it before the lease ends"]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseTicket {
    kind: String,
    name: String,
    owner: OwnerId,
    token: Option<FencingToken>,
    permits: u32,
}

const VERSION: &str = "locktopus1";

impl LeaseTicket {
    pub(crate) fn new(turn: &Turn) -> Self {
        let lease = &turn.lease;
        Self {
            kind: lease.target.kind().as_str().to_owned(),
            name: lease.target.name().as_str().to_owned(),
            owner: lease.owner.clone(),
            token: turn.token,
            permits: lease.permits,
        }
    }

    pub(crate) fn owner_id(&self) -> &OwnerId {
        &self.owner
    }

    /// The fencing token of the lease.
    #[must_use]
    pub fn token(&self) -> Option<FencingToken> {
        self.token
    }

    /// How many permits of a semaphore it is for; 1 for locks. The adopting request must ask for as
    /// many.
    #[must_use]
    pub fn permits(&self) -> u32 {
        self.permits
    }

    /// The ticket as one line of printable ASCII, to send over a trusted channel and parse again.
    #[must_use]
    pub fn expose(&self) -> String {
        let token = self.token.map_or(0, FencingToken::get);
        let (owner, name) = (
            URL_SAFE_NO_PAD.encode(self.owner.expose()),
            URL_SAFE_NO_PAD.encode(&self.name),
        );
        let mut text = format!("{VERSION}.{}.{name}.{owner}.{token}", self.kind);
        if self.permits != 1 {
            text.push_str(&format!(".{}", self.permits));
        }
        text
    }

    pub(crate) fn check(&self, target: &LockTarget, permits: u32) -> Result<(), LockError> {
        if self.name == target.name().as_str() && self.kind == target.kind().as_str() {
            if self.permits == permits {
                return Ok(());
            }
            let reason = format!("it is for {} permits, not for {permits}", self.permits);
            return Err(LockError::Ticket { reason });
        }
        let reason = format!("it is for {} {:?}, not for {target}", self.kind, self.name);
        Err(LockError::Ticket { reason })
    }
}

impl FromStr for LeaseTicket {
    type Err = LockError;

    fn from_str(text: &str) -> Result<Self, LockError> {
        let damaged = |what: &str| LockError::Ticket {
            reason: format!("its text is damaged ({what})"),
        };
        let mut parts = text.trim().split('.');
        let mut part = || parts.next();
        let (version, kind, name, owner, token) = (part(), part(), part(), part(), part());
        let permits = part();
        if version != Some(VERSION) || parts.next().is_some() {
            return Err(damaged("not a ticket of this version"));
        }
        let permits = match permits.map(str::parse) {
            None => 1,
            Some(Ok(permits)) if permits > 1 && permits <= MAX_PERMITS => permits,
            Some(_) => return Err(damaged("permits")),
        };
        // The sender may know other kinds than this version does, but a kind is always written as a
        // word.
        let is_word = |kind: &&str| {
            !kind.is_empty() && kind.bytes().all(|c| c.is_ascii_lowercase() || c == b'_')
        };
        let kind = kind.filter(is_word).ok_or_else(|| damaged("kind"))?;
        let decode = |part: Option<&str>| part.and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
        let name = decode(name)
            .and_then(|name| String::from_utf8(name).ok())
            .ok_or_else(|| damaged("name"))?;
        let owner = decode(owner)
            .filter(|owner| !owner.is_empty())
            .ok_or_else(|| damaged("owner"))?;
        let token: u64 = token
            .and_then(|token| token.parse().ok())
            .ok_or_else(|| damaged("token"))?;
        if token != 0 && FencingToken::new(token).is_none() {
            return Err(damaged("token"));
        }
        Ok(Self {
            kind: kind.to_owned(),
            name,
            owner: OwnerId::from_bytes(owner),
            token: FencingToken::new(token),
            permits,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_a_word() {
        for kind in ["lock", "permit_semaphore", "a_kind_of_a_later_version"] {
            let text = format!("locktopus1.{kind}.YQ.aG9zdC03.0");
            assert_eq!(text.parse::<LeaseTicket>().unwrap().expose(), text);
        }
        // The kind appears in errors, and is part of one line of printable ASCII.
        for kind in ["", "lo ck", "lo\nck", "Lock", "l\u{f6}ck"] {
            let text = format!("locktopus1.{kind}.YQ.aG9zdC03.0");
            let error = text.parse::<LeaseTicket>().unwrap_err().to_string();
            assert!(error.contains("kind"), "{kind:?}: {error}");
        }
    }
}
