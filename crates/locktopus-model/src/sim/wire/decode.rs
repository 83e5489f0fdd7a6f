//! Replies as answers.

use crate::redis::Reply;
use crate::sim::ask::{Answer, Ask, Extension};

pub(super) fn decode(ask: &Ask, reply: &Reply) -> (Answer, Option<i64>) {
    if let Reply::Error(error) = reply {
        return (Answer::Error(error.clone()), None);
    }
    if let Some(number) = reply.as_int() {
        return match ask {
            Ask::Acquire { tokens, .. } if number > 0 => {
                let token = if *tokens > 0 { number } else { 0 };
                (Answer::Granted { token }, Some(number))
            }
            // Of one.
            Ask::Extend { .. } if number == 1 => (Answer::Extended(Extension::Extended), None),
            Ask::Release { .. } if number >= -1 => (Answer::Released(true), None),
            _ => (Answer::Nonsense, None),
        };
    }
    let ints: Vec<i64> = reply.items().iter().filter_map(Reply::as_int).collect();
    let whole = ints.len() == reply.items().len();
    let remaining = |ms: i64| (ms >= 0).then_some(ms);
    match (ask, ints.as_slice()) {
        _ if !whole => (Answer::Nonsense, None),
        (Ask::Acquire { .. }, [0, ms, micros]) => (
            Answer::Held {
                remaining_ms: remaining(*ms),
            },
            Some(*micros),
        ),
        (Ask::Acquire { .. }, [1, token, micros]) => {
            (Answer::Granted { token: *token }, Some(*micros))
        }
        (Ask::Acquire { .. }, [2, _, micros]) => (Answer::Late, Some(*micros)),
        (Ask::Acquire { .. }, [3, ms, micros, ahead, fence, _]) => {
            let (remaining_ms, ahead, fence) = (remaining(*ms), *ahead, *fence);
            (
                Answer::Queued {
                    remaining_ms,
                    ahead,
                    fence,
                },
                Some(*micros),
            )
        }
        (Ask::Release { .. }, [0]) => (Answer::Released(false), None),
        (Ask::Extend { .. }, [1]) => (Answer::Extended(Extension::Extended), None),
        (Ask::Extend { .. }, [0]) => (Answer::Extended(Extension::Missing), None),
        (Ask::Extend { .. }, [-1]) => (Answer::Extended(Extension::TakenOver), None),
        _ => (Answer::Nonsense, None),
    }
}
