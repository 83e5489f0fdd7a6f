//! Owner ids: they identify a holder in requests and on the server.

use std::fmt;
use std::sync::{Arc, LazyLock};

use crate::instance::InstanceId;
#[cfg(feature = "simulation")]
use crate::simulation;

/// The identity under which one acquisition holds a lock.
///
/// Every acquisition gets a fresh one, so a late release or renewal of an earlier acquisition never
/// matches. An owner id is a secret: it is enough to release the lock. So `Debug` shows only a
/// short hash. [`OwnerId::expose`] returns the bytes.
///
/// The standard form is Redisson's `<uuid>:<i64>`. The uuid belongs to the process or to a labelled
/// instance. It is version 8 with 96 random bits and a mark, so that scripts can tell native
/// waiters from Java's version 4. The number has 64 random bits and belongs to the acquisition. It
/// is even for a lock and odd for a fair lock.
///
/// ```
/// use locktopus_contract::OwnerId;
/// let id = OwnerId::generate();
/// assert!(id.is_native() && id.instance().is_some());
/// // From another library, or stored earlier:
/// let foreign = OwnerId::from_bytes(b"host-7:4711".as_slice());
/// assert_eq!((foreign.expose(), foreign.is_native()), (b"host-7:4711".as_slice(), false));
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct OwnerId(Arc<[u8]>);

/// The third to fifth group of every native uuid: version 8, variant 10, and a mark.
const MARK: &str = "8c70-a705";

/// The upper half of the number in a placeholder's id. One other id in 2^32 has it by chance.
const PLACEHOLDER: i64 = 0x6b65_7074;

impl OwnerId {
    /// A fresh id in the standard form. Its number is read from the system each time, never from a
    /// stored supply. Otherwise two copies of a resumed process (virtual machine snapshots) would
    /// use the same numbers and hold the same locks.
    ///
    /// # Panics
    ///
    /// If the operating system returns no random numbers. With guessable ids, strangers could
    /// release locks.
    #[must_use]
    pub fn generate() -> Self {
        OwnerIds::of_process().any()
    }

    /// An id with bytes of your choice, for locks shared with a library that has its own format.
    #[must_use]
    pub fn from_bytes(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self(bytes.into())
    }

    /// The bytes stored in the backend. Treat them as a secret.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// Whether it is a native id in the standard form, which no other library makes.
    #[must_use]
    pub fn is_native(&self) -> bool {
        let bytes = self.expose();
        bytes.get(14..23) == Some(MARK.as_bytes()) && bytes.get(36) == Some(&b':')
    }

    /// Whether the lock only stays held under this id until its minimum hold time is over: its
    /// holder has released it. Owners in the form of another library do not tell.
    ///
    /// ```
    /// use locktopus_contract::OwnerId;
    /// assert!(!OwnerId::generate().is_placeholder());
    /// ```
    #[must_use]
    pub fn is_placeholder(&self) -> bool {
        let number = self.number();
        number.is_some_and(|number| number >> 32 == PLACEHOLDER)
    }

    /// This fresh id, marked as a placeholder if its form has a number. Keeps the number's parity.
    #[doc(hidden)]
    #[must_use]
    pub fn into_placeholder(self) -> Self {
        let marked = self.number().and_then(|number| {
            let number = PLACEHOLDER << 32 | number & 0xffff_ffff;
            let uuid = std::str::from_utf8(self.0.get(..36)?).ok()?;
            Some(Self::from_bytes(format!("{uuid}:{number}").into_bytes()))
        });
        marked.unwrap_or(self)
    }

    fn number(&self) -> Option<i64> {
        let digits = self.0.get(37..).filter(|_| self.is_native())?;
        std::str::from_utf8(digits).ok()?.parse().ok()
    }

    /// The instance that made it. Native ids tell it; ids in the forms of other libraries' mutexes
    /// do not. All permit ids look alike, so for a permit of another library the result is an
    /// unknown instance.
    #[must_use]
    pub fn instance(&self) -> Option<InstanceId> {
        let bytes = self.expose();
        if let Ok(permit) = <[u8; 16]>::try_from(bytes) {
            let [a, b, c, d, e, f, ..] = permit;
            return Some(InstanceId::from_bytes([a, b, c, d, e, f]));
        }
        if !self.is_native() || bytes[8] != b'-' {
            return None;
        }
        let mut instance = [0; 6];
        for (byte, at) in instance.iter_mut().zip([0, 2, 4, 6, 9, 11]) {
            let digit = |at: usize| char::from(bytes[at]).to_digit(16);
            *byte = u8::try_from(digit(at)? << 4 | digit(at + 1)?).ok()?;
        }
        Some(InstanceId::from_bytes(instance))
    }

    /// The id of the record with the reason why this owner lost the lock of this name, given
    /// without its namespace. It is a hash, so it does not reveal the owner id. One owner may hold
    /// many locks: a Java thread has one id for all of them.
    #[doc(hidden)]
    pub fn break_note(&self, name: &str) -> InstanceId {
        let bytes = self.0.iter().chain(b"\0").chain(name.as_bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let [_, _, bytes @ ..] = hash.to_be_bytes();
        InstanceId::from_bytes(bytes)
    }
}

/// The ids shared by all users in this process that need no identity of their own.
static PROCESS: LazyLock<Arc<OwnerIds>> = LazyLock::new(|| Arc::new(OwnerIds::fresh()));

/// Makes owner ids that identify their instance.
#[derive(Debug)]
pub struct OwnerIds {
    instance: InstanceId,
    uuid: String,
}

impl OwnerIds {
    /// Ids of a new instance, distinct from all others.
    pub fn fresh() -> Self {
        let [a, b, c, d, e, f, rest @ ..] = random::<12>();
        let hex = |bytes: &[u8]| {
            bytes
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        let uuid = format!(
            "{}-{}-{MARK}-{}",
            hex(&[a, b, c, d]),
            hex(&[e, f]),
            hex(&rest)
        );
        Self {
            instance: InstanceId::from_bytes([a, b, c, d, e, f]),
            uuid,
        }
    }

    /// The ids shared by all users in this process that need no identity of their own.
    pub fn of_process() -> Arc<Self> {
        #[cfg(feature = "simulation")]
        if let Some(ids) = simulation::ids() {
            return ids;
        }
        Arc::clone(&PROCESS)
    }

    /// The instance of these ids.
    pub fn instance(&self) -> InstanceId {
        self.instance
    }

    /// A fresh id.
    pub(crate) fn any(&self) -> OwnerId {
        self.numbered(i64::from_le_bytes(random()))
    }

    /// A fresh id with an even or an odd number. It tells two kinds apart that otherwise look the
    /// same, everywhere the id is stored.
    pub(crate) fn of_parity(&self, odd: bool) -> OwnerId {
        let number = i64::from_le_bytes(random()) & !1;
        self.numbered(number | i64::from(odd))
    }

    fn numbered(&self, number: i64) -> OwnerId {
        let (uuid, mut digits) = (self.uuid.as_bytes(), itoa::Buffer::new());
        let digits = digits.format(number).as_bytes();
        // A uuid, a colon, and the longest possible number.
        let mut text = [b':'; 36 + 1 + 20];
        text[..uuid.len()].copy_from_slice(uuid);
        let text = &mut text[..uuid.len() + 1 + digits.len()];
        text[uuid.len() + 1..].copy_from_slice(digits);
        OwnerId(Arc::from(&*text))
    }

    /// A fresh id of sixteen raw bytes, like those of Redisson's expiring permits: six of the
    /// instance, eight random ones, and two zero bytes, which number the permits of one
    /// acquisition.
    pub(crate) fn permit(&self) -> OwnerId {
        let mut bytes = [0; 16];
        bytes[..6].copy_from_slice(&self.instance.bytes());
        bytes[6..14].copy_from_slice(&random::<8>());
        OwnerId::from_bytes(bytes)
    }
}

/// The uuid in this process's owner ids, except those of labelled instances.
///
/// ```
/// assert_eq!(locktopus_contract::process_uuid().len(), 36);
/// ```
#[must_use]
pub fn process_uuid() -> &'static str {
    &PROCESS.uuid
}

/// `N` random bytes, from the operating system or from the simulated process of this thread.
pub fn random<const N: usize>() -> [u8; N] {
    #[cfg(feature = "simulation")]
    if let Some(bytes) = simulation::random() {
        return bytes;
    }
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system gives random numbers");
    bytes
}

impl fmt::Debug for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "owner#{:08x}", fnv1a(&self.0))
    }
}

/// A short, stable tag for logs. Not reversible in practice: an id holds at least 64 random bits
/// that occur nowhere else.
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
        let ends =
            [i64::MIN, -1, 0, i64::MAX].map(|number| OwnerIds::of_process().numbered(number));
        let prefix = process_uuid();
        for (id, number) in ends.iter().zip([i64::MIN, -1, 0, i64::MAX]) {
            assert_eq!(id.expose(), format!("{prefix}:{number}").as_bytes());
        }
    }

    #[test]
    fn locks_and_fair_locks_have_different_owners() {
        for odd in [false, true] {
            let id = OwnerIds::of_process().of_parity(odd);
            let last = id.expose().last().copied();
            assert_eq!(
                last.map(|digit| digit % 2 == 1),
                Some(odd),
                "a digit's byte is odd as the digit"
            );
            let kept = id.clone().into_placeholder();
            assert!(kept.is_placeholder() && kept.instance() == id.instance());
            assert_eq!(kept.expose().last().map(|digit| digit % 2 == 1), Some(odd));
        }
    }

    #[test]
    fn ids_tell_their_instance() {
        let (one, other) = (OwnerIds::fresh(), OwnerIds::fresh());
        assert_ne!(one.instance(), other.instance());
        for ids in [&one, &other] {
            assert!(
                ids.uuid
                    .replace('-', "")
                    .starts_with(&ids.instance().to_string())
            );
            for id in [ids.any(), ids.of_parity(true), ids.permit()] {
                assert_eq!(id.instance(), Some(ids.instance()));
                assert_eq!(id.is_native(), id.expose().len() > 16);
            }
            assert_ne!(ids.permit(), ids.permit());
        }
        for strange in [
            &b""[..],
            b"3f2a91c4-0b0b-4c70-9705-0c0c0c0c0c0c:7",
            b"3f2a91c4-0b0b-8c70-a705-0c0c0c0c0c0c",
            b"3f2a91c4_0b0b-8c70-a705-0c0c0c0c0c0c:7",
            b"3f2a91+4-0b0b-8c70-a705-0c0c0c0c0c0c:7",
            "3f2a91\u{e9}-0b0b-8c70-a705-0c0c0c0c0c0c:7".as_bytes(),
            &[0xff; 48],
        ] {
            let id = OwnerId::from_bytes(strange);
            assert_eq!(
                id.instance(),
                None,
                "{:?}",
                String::from_utf8_lossy(strange)
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
