//! One hold of one lock, and a compact encoding of many.

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// The time during which a worker believed that it holds a lock.
///
/// Both ends must lie inside it: take the start after the grant arrived, and the end before sending
/// the release. A wider interval would report overlaps that did not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hold {
    /// Which lock, for workloads with several.
    pub lock: u32,
    /// When it began, since the start of the round.
    pub start_ns: u64,
    /// When it ended, since the start of the round.
    pub end_ns: u64,
    /// The holder.
    pub worker: u32,
}

/// Why a recorder from another process could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The text is not base64.
    #[error("recorded holds are not base64 ({0}); the worker process was probably killed")]
    Base64(#[from] base64::DecodeError),
    /// The bytes end inside a hold or contain impossible numbers.
    #[error("recorded holds are damaged at byte {0}; the worker process was probably killed")]
    Damaged(usize),
    /// A histogram is damaged.
    #[error(transparent)]
    Histogram(#[from] crate::measure::model::HistogramError),
}

/// Packs holds as base64 of variable-length integers, starts as differences: about seven bytes for
/// a hold of some microseconds, against sixty as JSON.
pub(super) fn encode(holds: &[Hold]) -> String {
    let mut sorted = holds.to_vec();
    sorted.sort_unstable_by_key(|hold| hold.start_ns);
    let mut bytes = Vec::with_capacity(sorted.len() * 8);
    let mut last = 0;
    for hold in sorted {
        let numbers = [
            hold.start_ns - last,
            hold.end_ns.saturating_sub(hold.start_ns),
            u64::from(hold.lock),
            u64::from(hold.worker),
        ];
        for number in numbers {
            push_number(&mut bytes, number);
        }
        last = hold.start_ns;
    }
    STANDARD.encode(bytes)
}

/// The inverse of [`encode`]; holds come back sorted by start.
pub(super) fn decode(text: &str) -> Result<Vec<Hold>, WireError> {
    let bytes = STANDARD.decode(text)?;
    let mut holds = Vec::with_capacity(bytes.len() / 6);
    let (mut at, mut last) = (0, 0_u64);
    while at < bytes.len() {
        let begin = at;
        let mut next = || take_number(&bytes, &mut at).ok_or(WireError::Damaged(begin));
        let (step, length, lock, worker) = (next()?, next()?, next()?, next()?);
        let hold = || {
            let start_ns = last.checked_add(step)?;
            Some(Hold {
                lock: u32::try_from(lock).ok()?,
                start_ns,
                end_ns: start_ns.checked_add(length)?,
                worker: u32::try_from(worker).ok()?,
            })
        };
        let hold = hold().ok_or(WireError::Damaged(begin))?;
        last = hold.start_ns;
        holds.push(hold);
    }
    Ok(holds)
}

/// LEB128: seven bits a byte, lowest first, the top bit says that more follow.
fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take_number(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_the_round_trip() {
        let holds = vec![
            Hold {
                lock: 0,
                start_ns: 0,
                end_ns: 0,
                worker: 0,
            },
            Hold {
                lock: 63,
                start_ns: 5,
                end_ns: 1_000_000_000_000,
                worker: u32::MAX,
            },
            Hold {
                lock: 1,
                start_ns: u64::MAX - 1,
                end_ns: u64::MAX,
                worker: 3,
            },
        ];
        assert_eq!(decode(&encode(&holds)).unwrap(), holds);
        assert_eq!(decode("").unwrap(), vec![]);
    }

    #[test]
    fn half_a_hold_is_damage() {
        let text = STANDARD.encode([1, 2, 3]);
        assert!(matches!(decode(&text), Err(WireError::Damaged(0))));
    }
}
