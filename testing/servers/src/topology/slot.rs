//! Maps keys to cluster slots.

/// Number of slots in a cluster.
pub(crate) const SLOTS: u16 = 16_384;

/// The slot of `key`, by the part in braces if there is one.
#[must_use]
pub fn slot_of(key: &str) -> u16 {
    crc16(tag_of(key).as_bytes()) % SLOTS
}

/// Another key in the same slot, for probes that must not touch `key`.
pub(crate) fn sibling(key: &str) -> String {
    let candidate = format!("{{{}}}:locktopus-probe", tag_of(key));
    // A brace inside an untagged key would end the tag early; then only the key itself is safe.
    if slot_of(&candidate) == slot_of(key) {
        candidate
    } else {
        key.to_owned()
    }
}

fn tag_of(key: &str) -> &str {
    key.split_once('{')
        .and_then(|(_, rest)| rest.split_once('}'))
        .map(|(tag, _)| tag)
        .filter(|tag| !tag.is_empty())
        .unwrap_or(key)
}

fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 {
                crc << 1
            } else {
                (crc << 1) ^ 0x1021
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_the_published_values() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(slot_of("foo"), 12_182);
        assert_eq!(slot_of("{foo}bar"), 12_182);
        assert_eq!(slot_of("{}foo"), crc16(b"{}foo") % SLOTS);
    }

    #[test]
    fn siblings_share_the_slot() {
        for key in ["a", "{a}b", "a}b", "x{}y", "{"] {
            assert_eq!(slot_of(&sibling(key)), slot_of(key), "{key}");
        }
    }
}
