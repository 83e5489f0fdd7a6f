//! Decodes the replies of scripts.

use std::time::Duration;

use locktopus_contract::{
    AttemptOutcome, BackendError, BackendErrorKind, CounterOutcome, Eviction, Executed,
    ExtendOutcome, FencingToken, GroupOutcome, HolderState, LockState, Mode, OwnerId,
    ReleaseOutcome, WaiterState,
};

use crate::client::Reply;
use crate::kinds;

/// The reply of an acquire script.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Acquired {
    /// `None` if the script ran too late and did nothing.
    pub(crate) outcome: Option<AttemptOutcome>,
    /// Another library's client holds the lock or is ahead in its queue. Known only to waiters in
    /// the queue.
    pub(crate) foreign: bool,
    pub(crate) server_micros: i64,
}

/// Decodes replies. Its errors name the backend and the script.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decoder {
    pub(crate) backend: &'static str,
    pub(crate) script: &'static str,
}

impl Decoder {
    pub(crate) fn acquired(
        self,
        reply: &Reply,
        wants_token: bool,
    ) -> Result<Acquired, BackendError> {
        // The short form of the most frequent reply: granted, and the token is the server's time.
        let (usual, all);
        let ints = match reply {
            Reply::Int(micros) if *micros > 0 => {
                usual = [1, *micros, *micros];
                usual.as_slice()
            }
            reply => {
                all = self.int_list(reply)?;
                all.as_slice()
            }
        };
        let mut foreign = false;
        let (outcome, server_micros) = match *ints {
            [0, remaining, micros] => {
                let remaining = millis(remaining);
                (Some(AttemptOutcome::Busy { remaining }), micros)
            }
            [1, token, micros] => {
                let token = self.token(reply, token, wants_token)?;
                (Some(AttemptOutcome::Granted { token }), micros)
            }
            [2, _, micros] => (None, micros),
            [3, remaining, micros, ahead, last_token, others] => {
                foreign = others == 1;
                let queued = AttemptOutcome::Queued {
                    remaining: millis(remaining),
                    ahead: u64::try_from(ahead).map_err(|_| self.nonsense(reply))?,
                    last_token: u64::try_from(last_token).map_err(|_| self.nonsense(reply))?,
                };
                (Some(queued), micros)
            }
            _ => return Err(self.nonsense(reply)),
        };
        Ok(Acquired {
            outcome,
            foreign,
            server_micros,
        })
    }

    /// Decodes what a group got (`None` if too late) and the server's time. `wants` says which
    /// members have tokens.
    pub(crate) fn group(
        self,
        reply: &Reply,
        wants: &[bool],
    ) -> Result<(Option<GroupOutcome>, i64), BackendError> {
        let ints = self.int_list(reply)?;
        match *ints.as_slice() {
            [0, remaining, micros, index] => {
                let index = usize::try_from(index).ok().filter(|i| *i < wants.len());
                let index = index.ok_or_else(|| self.nonsense(reply))?;
                let remaining = millis(remaining);
                Ok((Some(GroupOutcome::Busy { index, remaining }), micros))
            }
            [1, _, micros, ref tokens @ ..] if tokens.len() == wants.len() => {
                let tokens = tokens.iter().zip(wants);
                let tokens = tokens.map(|(token, wanted)| self.token(reply, *token, *wanted));
                let tokens = tokens.collect::<Result<_, _>>()?;
                Ok((Some(GroupOutcome::Granted { tokens }), micros))
            }
            [2, _, micros] => Ok((None, micros)),
            _ => Err(self.nonsense(reply)),
        }
    }

    fn token(
        self,
        reply: &Reply,
        token: i64,
        wanted: bool,
    ) -> Result<Option<FencingToken>, BackendError> {
        if !wanted {
            return Ok(None);
        }
        let token = u64::try_from(token).ok().and_then(FencingToken::new);
        token.map(Some).ok_or_else(|| self.nonsense(reply))
    }

    pub(crate) fn evicted(self, reply: &Reply) -> Result<Eviction, BackendError> {
        let Some((Reply::Int(fence), owners)) = self.items(reply)?.split_first() else {
            return Err(self.nonsense(reply));
        };
        let owners = owners.iter().map(|owner| self.owner(owner));
        let fence = u64::try_from(*fence).ok().and_then(FencingToken::new);
        Ok(Eviction::new(owners.collect::<Result<_, _>>()?, fence))
    }

    pub(crate) fn counted(self, reply: &Reply) -> Result<CounterOutcome, BackendError> {
        let items = self.items(reply)?;
        let value = match items {
            [Reply::Int(value), Reply::Int(_)] => Some(*value),
            [Reply::Bytes(_), Reply::Int(_)] => None,
            _ => return Err(self.nonsense(reply)),
        };
        let changed = items.last() == Some(&Reply::Int(1));
        Ok(CounterOutcome { value, changed })
    }

    /// Decodes one letter for each of `count` keys.
    pub(crate) fn letters(self, reply: &Reply, count: usize) -> Result<Vec<u8>, BackendError> {
        let items = self.items(reply)?;
        let letter = |item: &Reply| match item {
            Reply::Bytes(word) if word.len() == 1 => Ok(word[0]),
            other => Err(self.nonsense(other)),
        };
        if items.len() != count {
            return Err(self.nonsense(reply));
        }
        items.iter().map(letter).collect()
    }

    fn owner(self, reply: &Reply) -> Result<OwnerId, BackendError> {
        match reply {
            Reply::Bytes(owner) => Ok(OwnerId::from_bytes(owner.to_vec())),
            other => Err(self.nonsense(other)),
        }
    }

    /// Whether the lock was left held without an owner.
    pub(crate) fn lingers(self, reply: &Reply) -> Result<bool, BackendError> {
        match reply {
            Reply::Int(left @ 0..=1) => Ok(*left == 1),
            other => Err(self.nonsense(other)),
        }
    }

    /// The outcome of a release, and whether it could notify the waiters.
    pub(crate) fn released(self, reply: &Reply) -> Result<(ReleaseOutcome, bool), BackendError> {
        match reply {
            Reply::Int(receivers @ -1..) => {
                if *receivers < 0 {
                    tracing::warn!(
                        backend = self.backend,
                        "released, but waiters could not be told; is the channel denied by an ACL?"
                    );
                }
                Ok((ReleaseOutcome::Released, *receivers >= 0))
            }
            Reply::Array(items) if matches!(items.as_slice(), [Reply::Int(0)]) => {
                Ok((ReleaseOutcome::NotHeld, true))
            }
            reply => Err(self.nonsense(reply)),
        }
    }

    pub(crate) fn extended(
        self,
        reply: &Reply,
        count: usize,
    ) -> Result<Vec<Result<ExtendOutcome, BackendError>>, BackendError> {
        let items = match reply {
            // The short form of the most frequent reply: the number of leases, all extended.
            Reply::Int(all) if usize::try_from(*all) == Ok(count) => {
                let all = std::iter::repeat_with(|| Ok(ExtendOutcome::Extended));
                return Ok(all.take(count).collect());
            }
            reply => self.items(reply)?,
        };
        if items.len() != count {
            return Err(self.nonsense(reply));
        }
        let decode = |item: &Reply| match item {
            Reply::Int(1) => Ok(ExtendOutcome::Extended),
            Reply::Int(0) => Ok(ExtendOutcome::Missing),
            Reply::Int(-1) => Ok(ExtendOutcome::TakenOver),
            Reply::Int(-2) => {
                let message = "the server refused to look at the lock; may this user read it?";
                Err(BackendError::new(
                    self.backend,
                    BackendErrorKind::Refused,
                    Executed::No,
                    message,
                ))
            }
            other => Err(self.nonsense(other)),
        };
        Ok(items.iter().map(decode).collect())
    }

    pub(crate) fn state(self, reply: &Reply) -> Result<LockState, BackendError> {
        let [
            Reply::Array(holders),
            token @ Reply::Bytes(_),
            Reply::Array(waiters),
            available,
            Reply::Int(now),
        ] = self.items(reply)?
        else {
            return Err(self.nonsense(reply));
        };
        let mut state = LockState::default();
        let token = token.text().and_then(|token| token.parse().ok());
        state.last_token = token.and_then(FencingToken::new);
        for holder in holders {
            let (owner, mode, [holds, remaining]) = self.entry(holder)?;
            let holds = u64::try_from(holds).unwrap_or(0);
            let held_for = held_for(&owner, mode, state.last_token, *now);
            let holder = HolderState::new(owner, mode, holds, millis(remaining));
            state.holders.push(holder.held_for(held_for));
        }
        for waiter in waiters {
            let (owner, mode, [permits, kept, waited]) = self.entry(waiter)?;
            let permits = u32::try_from(permits).unwrap_or(0);
            let waiter = WaiterState::new(owner, mode, permits, millis(kept));
            state.waiters.push(waiter.waited_for(millis(waited)));
        }
        state.available = match available {
            Reply::Int(free) => Some(*free),
            _ => None,
        };
        Ok(state)
    }

    /// A holder or waiter: its id, its mode and numbers.
    fn entry<const N: usize>(
        self,
        reply: &Reply,
    ) -> Result<(OwnerId, Mode, [i64; N]), BackendError> {
        let nonsense = || self.nonsense(reply);
        let [Reply::Bytes(owner), Reply::Bytes(mode), numbers @ ..] = self.items(reply)? else {
            return Err(nonsense());
        };
        let mode = kinds::mode(mode).ok_or_else(nonsense)?;
        let numbers = self.int_list(&Reply::Array(numbers.to_vec()))?;
        let numbers = numbers.try_into().map_err(|_| nonsense())?;
        Ok((OwnerId::from_bytes(owner.to_vec()), mode, numbers))
    }

    fn items(self, reply: &Reply) -> Result<&[Reply], BackendError> {
        reply.items().ok_or_else(|| self.nonsense(reply))
    }

    fn int_list(self, reply: &Reply) -> Result<Vec<i64>, BackendError> {
        let items = self.items(reply)?;
        let int = |item: &Reply| match item {
            Reply::Int(value) => Ok(*value),
            _ => Err(self.nonsense(reply)),
        };
        items.iter().map(int).collect()
    }

    /// Shows the reply's shape and not its contents, because an owner id is a secret.
    fn nonsense(self, reply: &Reply) -> BackendError {
        let message = format!(
            "{}.lua gave a malformed answer: {}",
            self.script,
            shape(reply)
        );
        BackendError::new(
            self.backend,
            BackendErrorKind::Protocol,
            Executed::Maybe,
            message,
        )
    }
}

/// How long, at least, a holder has held a lock. Its token tells: a token is never below the
/// server's time at the grant. The last token is this holder's only if the holder is native and
/// exclusive. A token ahead of the server's clock tells nothing.
fn held_for(
    owner: &OwnerId,
    mode: Mode,
    token: Option<FencingToken>,
    now: i64,
) -> Option<Duration> {
    let (true, Mode::Exclusive, Some(token)) = (owner.is_native(), mode, token) else {
        return None;
    };
    let micros = u64::try_from(now).ok()?.checked_sub(token.get())?;
    Some(Duration::from_micros(micros))
}

/// The value of a field in the text that answers `INFO`.
pub(crate) fn info<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(value.trim())
}

/// Decodes the answer to `TIME`, in microseconds.
pub(crate) fn time(reply: &Reply) -> Option<i64> {
    let number = |reply: &Reply| match reply {
        Reply::Int(number) => Some(*number),
        digits => digits.text()?.parse().ok(),
    };
    let [seconds, micros] = reply.items()? else {
        return None;
    };
    number(seconds)?
        .checked_mul(1_000_000)?
        .checked_add(number(micros)?)
}

fn millis(value: i64) -> Option<Duration> {
    u64::try_from(value).ok().map(Duration::from_millis)
}

fn shape(reply: &Reply) -> String {
    match reply {
        Reply::Nil => "nil".to_owned(),
        Reply::Int(value) => value.to_string(),
        Reply::Bytes(bytes) => format!("a string of {} bytes", bytes.len()),
        Reply::Array(items) => {
            format!(
                "[{}]",
                items
                    .iter()
                    .take(8)
                    .map(shape)
                    .collect::<Vec<_>>()
                    .join(", ")
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECODER: Decoder = Decoder {
        backend: "test",
        script: "test",
    };

    fn array(values: &[i64]) -> Reply {
        Reply::Array(values.iter().copied().map(Reply::Int).collect())
    }

    #[test]
    fn garbage_is_an_error_and_never_a_grant() {
        for reply in [
            Reply::Nil,
            Reply::Int(0),
            Reply::Int(-1),
            Reply::Int(1 << 53),
            Reply::Bytes("1".into()),
            array(&[]),
            array(&[1]),
            array(&[1, 5]),
            array(&[3, 5, 9]),
            array(&[1, 0, 9]),
            array(&[1, -4, 9]),
            array(&[1, 1 << 53, 9]),
            array(&[1, 5, 9, 9]),
            Reply::Array(vec![Reply::Int(1), Reply::Bytes("5".into()), Reply::Int(9)]),
        ] {
            let err = DECODER.acquired(&reply, true).unwrap_err();
            assert_eq!(err.kind(), BackendErrorKind::Protocol, "{reply:?}");
            assert_eq!(err.executed(), Executed::Maybe, "{reply:?}");
        }
        for reply in [
            array(&[1]),
            Reply::Int(1),
            Reply::Int(3),
            Reply::Int(0),
            Reply::Nil,
        ] {
            assert!(DECODER.extended(&reply, 2).is_err(), "{reply:?}");
        }
        for reply in [
            Reply::Nil,
            Reply::Int(-2),
            array(&[]),
            array(&[1]),
            array(&[0, 0]),
        ] {
            assert!(DECODER.released(&reply).is_err(), "{reply:?}");
        }
    }

    #[test]
    fn a_time_is_two_numbers() {
        let words = |words: &[&'static str]| {
            let words = words.iter().map(|word| Reply::Bytes((*word).into()));
            time(&Reply::Array(words.collect()))
        };
        assert_eq!(words(&["3", "000007"]), Some(3_000_007));
        assert_eq!(time(&array(&[3, 7])), Some(3_000_007));
        assert_eq!(time(&array(&[i64::MAX, 7])), None);
        let nonsense = [words(&["3"]), words(&["3", "x"]), time(&Reply::Nil)];
        assert_eq!(nonsense, [None; 3]);
    }

    #[test]
    fn a_number_alone_says_what_is_usual() {
        let granted = DECODER.acquired(&Reply::Int(5), true).unwrap();
        assert_eq!(granted, DECODER.acquired(&array(&[1, 5, 5]), true).unwrap());
        let granted = DECODER.acquired(&Reply::Int(5), false).unwrap();
        assert_eq!(
            granted.outcome,
            Some(AttemptOutcome::Granted { token: None })
        );
        let extended = DECODER.extended(&Reply::Int(2), 2).unwrap();
        assert!(matches!(
            extended.as_slice(),
            [Ok(ExtendOutcome::Extended), Ok(ExtendOutcome::Extended)]
        ));
        let released = |reply| DECODER.released(&reply).unwrap();
        assert_eq!(released(Reply::Int(0)), (ReleaseOutcome::Released, true));
        assert_eq!(released(Reply::Int(-1)), (ReleaseOutcome::Released, false));
        assert_eq!(released(array(&[0])), (ReleaseOutcome::NotHeld, true));
    }

    #[test]
    fn who_holds_it_for_how_long_is_told_by_the_last_token() {
        let (native, java) = (
            OwnerId::generate(),
            OwnerId::from_bytes(*b"3f2a91c4-0b0b-4c70-9705-0c0c0c0c0c0c:7"),
        );
        let told = |owner: &OwnerId, mode: &'static str, token: &'static str, now| {
            let owner = Reply::Bytes(owner.expose().to_vec().into());
            let holder = vec![
                owner,
                Reply::Bytes(mode.into()),
                Reply::Int(1),
                Reply::Int(5),
            ];
            let state = DECODER.state(&Reply::Array(vec![
                Reply::Array(vec![Reply::Array(holder)]),
                Reply::Bytes(token.into()),
                Reply::Array(Vec::new()),
                Reply::Bytes("".into()),
                Reply::Int(now),
            ]));
            state.unwrap().holders[0].held_for
        };
        let time = Some(Duration::from_micros(7));
        assert_eq!(told(&native, "x", "100", 107), time);
        assert_eq!(told(&native, "w", "100", 107), time);
        // The token is ahead of the clock; lost; of a grant before; of a writer before.
        assert_eq!(told(&native, "x", "108", 107), None);
        assert_eq!(told(&native, "x", "", 107), None);
        assert_eq!(told(&java, "x", "100", 107), None);
        assert_eq!(told(&native, "r", "100", 107), None);
    }

    #[test]
    fn errors_show_no_contents() {
        let reply = Reply::Array(vec![Reply::Bytes("secret-owner".into())]);
        assert!(
            !DECODER
                .state(&reply)
                .unwrap_err()
                .to_string()
                .contains("secret")
        );
    }
}
