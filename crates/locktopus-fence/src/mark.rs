//! A mark that tells holders apart, without any right to act for them.

use std::fmt;

use locktopus_contract::OwnerId;

/// A hash of an [`OwnerId`]. It tells holders apart where the id must stay secret, because the id
/// is enough to release the lock. Sixteen hex digits as text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HolderMark(u64);

/// The number of digits in the text.
const DIGITS: usize = 16;

impl HolderMark {
    /// The mark of an owner: the first 64 bits of a SHA-1 hash. At least 64 bits of an id are
    /// random and secret, so it cannot be guessed within a lease.
    ///
    /// ```
    /// use locktopus::{HolderMark, OwnerId};
    /// let owner = OwnerId::generate();
    /// assert_eq!(HolderMark::of(&owner), HolderMark::of(&owner));
    /// assert_ne!(HolderMark::of(&owner), HolderMark::of(&OwnerId::generate()));
    /// ```
    #[must_use]
    pub fn of(owner: &OwnerId) -> Self {
        let mut hash = sha1_smol::Sha1::from("locktopus holder mark:");
        hash.update(owner.expose());
        let [a, b, c, d, e, f, g, h, ..] = hash.digest().bytes();
        Self(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
    }

    /// Reads the output of [`Display`](fmt::Display), and nothing else.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digits = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        (digits && text.len() == DIGITS)
            .then(|| u64::from_str_radix(text, 16).ok().map(Self))
            .flatten()
    }
}

impl fmt::Display for HolderMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:0DIGITS$x}", self.0)
    }
}

impl fmt::Debug for HolderMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HolderMark({self})")
    }
}
