//! Hash slots, as the cluster specification defines them.

use std::sync::LazyLock;

/// Number of hash slots in a cluster.
pub const SLOTS: u16 = 16_384;

/// The hash slot of a key: CRC16 (XMODEM) of its hash tag, or of the whole key if it has none.
///
/// A hash tag is the text between the first `{` and the first `}` after it, unless that is empty.
///
/// ```
/// use locktopus_protocol::slot::key_slot;
/// assert_eq!(key_slot(b"123456789"), 0x31C3);
/// assert_eq!(key_slot(b"order:7"), key_slot(b"redisson_lock__channel:{order:7}"));
/// ```
#[must_use]
pub fn key_slot(key: &[u8]) -> u16 {
    crc16(hash_tag(key).unwrap_or(key)) % SLOTS
}

/// The name of a key in a slot: the prefix, and as its hash tag the smallest number that maps to
/// the slot. With `None`, outside a cluster, the prefix alone.
pub(crate) fn key_in(prefix: &str, slot: Option<u16>) -> String {
    match slot {
        None => prefix.to_owned(),
        Some(slot) => format!("{prefix}:{{{}}}", TAGS[usize::from(slot % SLOTS)]),
    }
}

/// The smallest number in each slot.
static TAGS: LazyLock<Vec<u32>> = LazyLock::new(|| {
    let mut tags = vec![None; usize::from(SLOTS)];
    let mut missing = tags.len();
    for number in 0_u32.. {
        let tag = &mut tags[usize::from(key_slot(number.to_string().as_bytes()))];
        if tag.is_none() {
            *tag = Some(number);
            missing -= 1;
        }
        if missing == 0 {
            break;
        }
    }
    tags.into_iter().flatten().collect()
});

fn hash_tag(key: &[u8]) -> Option<&[u8]> {
    let open = key.iter().position(|&b| b == b'{')?;
    let len = key[open + 1..].iter().position(|&b| b == b'}')?;
    (len > 0).then(|| &key[open + 1..open + 1 + len])
}

fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, &byte| {
        (crc << 8) ^ TABLE[usize::from((crc >> 8) as u8 ^ byte)]
    })
}

const TABLE: [u16; 256] = table();

const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut crc = (index as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 {
                crc << 1
            } else {
                (crc << 1) ^ 0x1021
            };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::{SLOTS, key_in, key_slot};

    #[test]
    fn matches_the_servers_answers() {
        // CLUSTER KEYSLOT on Redis 7.0.15.
        for (key, slot) in [("foo", 12182), ("{user1000}.following", 3443), ("", 0)] {
            assert_eq!(key_slot(key.as_bytes()), slot, "{key}");
        }
    }

    #[test]
    fn tags_follow_the_specification() {
        assert_eq!(
            key_slot(b"foo{}{bar}"),
            super::crc16(b"foo{}{bar}") % super::SLOTS
        );
        assert_eq!(
            key_slot(b"foo{{bar}}zap"),
            super::crc16(b"{bar") % super::SLOTS
        );
        assert_eq!(key_slot(b"foo{bar}{zap}"), key_slot(b"bar"));
        assert_eq!(
            key_slot(b"open{only"),
            super::crc16(b"open{only") % super::SLOTS
        );
    }

    #[test]
    fn every_slot_has_a_key() {
        for slot in 0..SLOTS {
            assert_eq!(key_slot(key_in("mark", Some(slot)).as_bytes()), slot);
        }
        assert_eq!(key_in("mark", None), "mark");
    }
}
