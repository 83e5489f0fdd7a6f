//! Names and slots, tried on random names: all keys and channels of a lock are in one slot, or a cluster's name
//! check says why not.
#![allow(clippy::unwrap_used, reason = "a test may end with a panic")]

use std::borrow::Cow;
use std::sync::Arc;

use locktopus_core::{LockKind, LockName, LockTarget, MutexProfile, NameError};
use locktopus_protocol::Keys;
use locktopus_protocol::slot::key_slot;

const NAMES: u64 = 1_000_000;

/// Numbers that look random (SplitMix64). The same in every run, so a failure can be repeated.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 1 to 12 bytes, each made from eight random bits.
    fn name<T>(&mut self, byte: impl Fn(u8) -> T) -> Vec<T> {
        let (length, mut bits) = (1 + self.next() % 12, 0);
        let bytes = (0..length).map(|at| {
            bits = if at % 8 == 0 { self.next() } else { bits >> 8 };
            byte(bits as u8)
        });
        bytes.collect()
    }

    fn kind(&mut self, kinds: &[LockKind]) -> LockKind {
        kinds[self.next() as usize % kinds.len()].clone()
    }
}

fn kinds() -> Vec<LockKind> {
    let template = |text| MutexProfile::default().key_template(text).unwrap();
    let mutex = |profile| LockKind::Mutex(Arc::new(profile));
    vec![
        LockKind::Reentrant,
        mutex(MutexProfile::default()),
        mutex(MutexProfile::single_key()),
        mutex(template("lock:{name}:x")),
        LockKind::Fair,
        LockKind::Read,
        LockKind::Write,
        LockKind::Semaphore,
        LockKind::Permits,
        LockKind::Latch,
    ]
}

/// Everything on the servers that is named after the lock.
fn everything(keys: &Keys) -> impl Iterator<Item = Cow<'_, str>> {
    let channels = [&keys.channel, &keys.native].into_iter().flatten();
    let channels = channels.map(|name| std::str::from_utf8(name).unwrap().into());
    let inbox = keys.inbox.iter().map(|inbox| format!("{inbox}me").into());
    let names = keys.names.iter().map(|name| name.as_str().into());
    names.chain(channels).chain(inbox)
}

/// What the specification hashes: what is between the first `{` and the first `}` after it, if anything is; else
/// the whole key.
fn hashed(key: &str) -> &str {
    let behind = key.split_once('{').map_or("", |(_, behind)| behind);
    match behind.split_once('}') {
        Some((tag, _)) if !tag.is_empty() => tag,
        _ => key,
    }
}

/// CRC16/XMODEM bit by bit, as its definition has it.
fn slot(key: &str) -> u16 {
    let mut crc = 0_u16;
    for byte in hashed(key).bytes() {
        crc ^= u16::from(byte) << 8;
        for _ in 0..8 {
            let carry = crc & 0x8000 != 0;
            crc <<= 1;
            if carry {
                crc ^= 0x1021;
            }
        }
    }
    crc & 16_383
}

#[test]
fn every_encoded_name_has_one_slot() {
    let (mut random, kinds) = (Random(1), kinds());
    for _ in 0..NAMES {
        let bytes = random.name(|bits| bits);
        let name = LockName::encode(&bytes).unwrap();
        let kind = random.kind(&kinds);
        let keys = Keys::of(&LockTarget::new(name, kind));
        // What is hashed is the same, so the slot is too, and no key can be taken for one of another name.
        for key in everything(&keys) {
            assert_eq!(hashed(&key), keys.main(), "{bytes:?}");
        }
        assert_eq!(keys.check_one_slot("a cluster"), Ok(()), "{bytes:?}");
    }
}

#[test]
fn plain_names_are_refused_exactly_if_their_keys_disagree() {
    let (mut random, kinds) = (Random(2), kinds());
    let (mut refused, mut accepted_with_braces) = (0, 0);
    for _ in 0..NAMES / 4 {
        let text: String = random
            .name(|bits| char::from(b"{}{}abc:"[usize::from(bits & 7)]))
            .into_iter()
            .collect();
        let name = LockName::new(&text).unwrap();
        let kind = random.kind(&kinds);
        let keys = Keys::of(&LockTarget::new(name, kind.clone()));
        let main = keys.main();
        let one_slot =
            everything(&keys).all(|key| hashed(&key) == hashed(main) || slot(&key) == slot(main));
        match keys.check_one_slot("a cluster") {
            Ok(()) => {
                assert!(one_slot, "{kind:?} {text:?} was accepted");
                accepted_with_braces += u64::from(text.contains('{'));
            }
            Err(error) => {
                assert!(!one_slot, "{kind:?} {text:?}: {error}");
                let NameError::Refused {
                    name,
                    backend,
                    rule,
                } = error
                else {
                    panic!("{error:?}");
                };
                assert_eq!((name.as_str(), backend), (main, "a cluster"));
                assert!(rule.contains("hash tag"), "{rule}");
                refused += 1;
            }
        }
    }
    // Both answers were tried.
    assert!(refused > NAMES / 40, "{refused} refused");
    assert!(
        accepted_with_braces > NAMES / 40,
        "{accepted_with_braces} accepted"
    );
}

/// The two ways of counting slots have nothing in common but the specification.
#[test]
fn slots_are_those_of_the_specification() {
    assert_eq!(slot("123456789"), 0x31C3);
    let mut random = Random(3);
    for _ in 0..NAMES / 10 {
        let odd = |bits: u8| {
            if bits & 1 == 0 {
                b"{}a\0"[usize::from(bits >> 6)]
            } else {
                bits
            }
        };
        let key: String = random
            .name(|bits| char::from(odd(bits)))
            .into_iter()
            .collect();
        assert_eq!(key_slot(key.as_bytes()), slot(&key), "{key:?}");
    }
}
