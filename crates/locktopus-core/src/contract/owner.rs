//! Owner ids: who holds a lock, on the wire.

use std::fmt;
use std::sync::{Arc, OnceLock};

/// The identity under which one acquisition holds a lock.
///
/// Fresh for every acquisition, so that a late release or renewal of an earlier one can never match.
/// The id is a capability: whoever knows it can release the lock. `Debug` therefore shows a short hash;
/// [`OwnerId::expose`] gives the bytes.
///
/// The standard form is Redisson's `<uuid>:<i64>`. The uuid belongs to the process (version 8, 96 random
/// bits, marked so that scripts can tell native waiters from Java's version 4), the number to the
/// acquisition (64 random bits, of which a lock's are even and a fair lock's odd).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct OwnerId(Arc<[u8]>);

/// The bytes every native uuid carries in its third to fifth group: version 8, variant 10, and a mark.
const MARK: &str = "8c70-a705";

impl OwnerId {
    /// A fresh id in the standard form. Its number is fetched when it is made: of a supply, the copies of a process that
    /// was stored and started twice (virtual machines are) would use the same numbers, and hold the same locks.
    ///
    /// # Panics
    ///
    /// If the operating system has no random numbers to give. Going on with guessable ids would let
    /// strangers release locks.
    #[must_use]
    pub fn generate() -> Self {
        Self::numbered(i64::from_le_bytes(random()))
    }

    /// As [`generate`](Self::generate), with an even or an odd number: two kinds that look the same otherwise are told
    /// apart by that, wherever the id is written down.
    pub(crate) fn of_parity(odd: bool) -> Self {
        let number = i64::from_le_bytes(random()) & !1;
        Self::numbered(number | i64::from(odd))
    }

    fn numbered(number: i64) -> Self {
        let (uuid, mut digits) = (process_uuid().as_bytes(), itoa::Buffer::new());
        let digits = digits.format(number).as_bytes();
        // A uuid, a colon, and the longest number there is.
        let mut text = [b':'; 36 + 1 + 20];
        text[..uuid.len()].copy_from_slice(uuid);
        let text = &mut text[..uuid.len() + 1 + digits.len()];
        text[uuid.len() + 1..].copy_from_slice(digits);
        Self(Arc::from(&*text))
    }

    /// A fresh id of sixteen raw bytes, as Redisson's expiring permits have. The last two are zero: they number
    /// the permits of one acquisition.
    #[must_use]
    pub(crate) fn permit() -> Self {
        let mut bytes: [u8; 16] = random();
        (bytes[14], bytes[15]) = (0, 0);
        Self::from_bytes(bytes)
    }

    /// An id with bytes chosen by the caller, for locks shared with a library that has its own format.
    #[must_use]
    pub fn from_bytes(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self(bytes.into())
    }

    /// The bytes stored in the backend. Treat them as a secret.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

/// The uuid this process uses in its owner ids.
#[must_use]
pub fn process_uuid() -> &'static str {
    static UUID: OnceLock<String> = OnceLock::new();
    UUID.get_or_init(|| {
        let [a, b, c, d, rest @ ..] = random::<12>();
        let hex = |bytes: &[u8]| {
            bytes
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        format!(
            "{}-{}-{MARK}-{}",
            hex(&[a, b, c, d]),
            hex(&rest[..2]),
            hex(&rest[2..])
        )
    })
}

pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system gives random numbers");
    bytes
}

impl fmt::Debug for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "owner#{:08x}", fnv1a(&self.0))
    }
}

/// A short, stable tag for logs. Not reversible in practice because the id holds over 100 random bits.
fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, &byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_form_is_a_uuid_and_a_number() {
        let id = OwnerId::generate();
        let text = std::str::from_utf8(id.expose()).unwrap();
        let (uuid, number) = text.split_once(':').unwrap();
        assert_eq!(uuid.len(), 36);
        assert_eq!(uuid.as_bytes()[14], b'8', "uuid version");
        assert_eq!(uuid.as_bytes()[19], b'a', "uuid variant");
        assert!(number.parse::<i64>().is_ok());
        assert_ne!(id, OwnerId::generate());
    }

    #[test]
    fn numbers_are_written_out() {
        let ends = [i64::MIN, -1, 0, i64::MAX].map(OwnerId::numbered);
        let prefix = process_uuid();
        for (id, number) in ends.iter().zip([i64::MIN, -1, 0, i64::MAX]) {
            assert_eq!(id.expose(), format!("{prefix}:{number}").as_bytes());
        }
    }

    #[test]
    fn locks_and_fair_locks_have_different_owners() {
        for odd in [false, true] {
            let id = OwnerId::of_parity(odd);
            let last = id.expose().last().copied();
            assert_eq!(
                last.map(|digit| digit % 2 == 1),
                Some(odd),
                "a digit's byte is odd as the digit"
            );
        }
    }

    #[test]
    fn debug_hides_the_id() {
        let id = OwnerId::generate();
        let text = String::from_utf8(id.expose().to_vec()).unwrap();
        assert!(!text.contains(&format!("{id:?}")) && format!("{id:?}").len() < 16);
    }
}
