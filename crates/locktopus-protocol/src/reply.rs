//! From script replies to answers.

use std::time::Duration;

use locktopus_core::{
    BackendError, BackendErrorKind, Executed, ExtendOutcome, FencingToken, HolderState, LockState,
    OwnerId, ReleaseOutcome,
};

use crate::client::Reply;

/// What an acquire script said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Acquired {
    Granted {
        token: Option<FencingToken>,
        server_micros: i64,
    },
    Held {
        remaining: Option<Duration>,
        server_micros: i64,
    },
    Late {
        server_micros: i64,
    },
}

/// Turns replies into answers; knows whom to blame if one makes no sense.
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
        let [status, value, server_micros] = self.ints(reply)?;
        match status {
            0 => Ok(Acquired::Held {
                remaining: millis(value),
                server_micros,
            }),
            1 if !wants_token => Ok(Acquired::Granted {
                token: None,
                server_micros,
            }),
            1 => {
                let token = u64::try_from(value).ok().and_then(FencingToken::new);
                let token = token.ok_or_else(|| self.nonsense(reply))?;
                Ok(Acquired::Granted {
                    token: Some(token),
                    server_micros,
                })
            }
            2 => Ok(Acquired::Late { server_micros }),
            _ => Err(self.nonsense(reply)),
        }
    }

    /// What a release found, and whether waiters could be told.
    pub(crate) fn released(self, reply: &Reply) -> Result<(ReleaseOutcome, bool), BackendError> {
        match self.ints(reply)? {
            [1, receivers] => {
                if receivers < 0 {
                    tracing::warn!(
                        backend = self.backend,
                        "released, but waiters could not be told; is the channel denied by an ACL?"
                    );
                }
                Ok((ReleaseOutcome::Released, receivers >= 0))
            }
            [0, _] => Ok((ReleaseOutcome::NotHeld, true)),
            _ => Err(self.nonsense(reply)),
        }
    }

    pub(crate) fn extended(
        self,
        reply: &Reply,
        count: usize,
    ) -> Result<Vec<Result<ExtendOutcome, BackendError>>, BackendError> {
        let Reply::Array(items) = reply else {
            return Err(self.nonsense(reply));
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
        let Reply::Array(items) = reply else {
            return Err(self.nonsense(reply));
        };
        let [
            Reply::Bytes(owner),
            Reply::Int(holds),
            Reply::Int(remaining),
            Reply::Bytes(token),
        ] = items.as_slice()
        else {
            return Err(self.nonsense(reply));
        };
        let holder = (!owner.is_empty()).then(|| HolderState {
            owner: OwnerId::from_bytes(owner.to_vec()),
            holds: u64::try_from(*holds).unwrap_or(0),
            remaining: millis(*remaining),
        });
        let token = std::str::from_utf8(token)
            .ok()
            .and_then(|token| token.parse().ok());
        Ok(LockState {
            holder,
            last_token: token.and_then(FencingToken::new),
        })
    }

    fn ints<const N: usize>(self, reply: &Reply) -> Result<[i64; N], BackendError> {
        let Reply::Array(items) = reply else {
            return Err(self.nonsense(reply));
        };
        let ints: Vec<i64> = items
            .iter()
            .filter_map(|item| {
                if let Reply::Int(value) = item {
                    Some(*value)
                } else {
                    None
                }
            })
            .collect();
        if items.len() != N {
            return Err(self.nonsense(reply));
        }
        ints.try_into().map_err(|_| self.nonsense(reply))
    }

    /// The reply's shape is shown, not its contents: an owner id is a secret.
    fn nonsense(self, reply: &Reply) -> BackendError {
        let message = format!(
            "{}.lua answered {}, which makes no sense",
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
            Reply::Int(1),
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
        assert!(DECODER.extended(&array(&[1]), 2).is_err());
        assert!(DECODER.released(&array(&[2, 0])).is_err());
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
