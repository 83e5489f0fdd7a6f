//! Names and slots, on random names: all keys and channels of a lock share a slot, or a cluster's
//! name check explains why not.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use locktopus_contract::{LockKind, LockName, LockTarget, MutexProfile, NameError, Notification};
use locktopus_protocol::Keys;
use locktopus_protocol::slot::key_slot;

const NAMES: u64 = 1_000_000;

/// Pseudo-random numbers (SplitMix64), the same in every run, so that failures can be reproduced.
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
    let template = MutexProfile::default()
        .key_template("lock:{name}:x")
        .unwrap();
    let mutexes = [MutexProfile::single_key(), template];
    let mutexes = mutexes.map(|profile| LockKind::Mutex(Arc::new(profile)));
    LockKind::all().into_iter().chain(mutexes).collect()
}

/// Every key and channel that is named after the lock.
fn everything(keys: &Keys) -> impl Iterator<Item = Cow<'_, str>> {
    let channels = [&keys.channel, &keys.native].into_iter().flatten();
    let channels = channels.map(|name| std::str::from_utf8(name).unwrap().into());
    let inbox = keys.inbox.iter().map(|inbox| format!("{inbox}me").into());
    let names = keys.names.iter().map(|name| name.as_str().into());
    names.chain(channels).chain(inbox)
}

/// The hashed part of a key: the text between the first `{` and the first `}` after it, unless
/// empty; else the whole key.
fn hashed(key: &str) -> &str {
    let behind = key.split_once('{').map_or("", |(_, behind)| behind);
    match behind.split_once('}') {
        Some((tag, _)) if !tag.is_empty() => tag,
        _ => key,
    }
}

/// CRC16/XMODEM bit by bit, straight from its definition.
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
        // The hashed text is the same, so the slot is too, and no key can be confused with one of
        // another name.
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
    // Both answers occurred.
    assert!(refused > NAMES / 40, "{refused} refused");
    assert!(
        accepted_with_braces > NAMES / 40,
        "{accepted_with_braces} accepted"
    );
}

/// Words to build names from that may be confused with others, or with keys beside others.
const WORDS: [&str; 23] = [
    "{n}",
    "n",
    "a",
    "{",
    "}",
    ":",
    "timeout",
    ":timeout",
    ":rwlock_timeout:1",
    "rwlock_timeout",
    "1",
    OWNER,
    "lock",
    "redisson_lock_queue:",
    "redisson_lock_timeout:",
    "redisson_lock_token:",
    "locktopus_waiters:",
    "locktopus_queue:",
    "locktopus_holders:",
    "locktopus_kind:",
    "locktopus_done:",
    "lock-signal:",
    "redisson_rwlock:",
];
/// A holder or an operation, as appended to a name.
const OWNER: &str = ":0a0a0a0a-0b0b-8c70-a705-0c0c0c0c0c0c:7";

/// Every name of up to this many words.
fn names_of(words: usize) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut from = 0;
    for _ in 0..words {
        let until = names.len();
        for at in from..until {
            for word in WORDS {
                names.push(format!("{}{word}", names[at]));
            }
        }
        from = until;
    }
    names.retain(|name| !name.is_empty());
    names.sort_unstable();
    names.dedup();
    names
}

/// The names of all keys and channels of a lock. Keys and channels are separate name spaces, and so
/// are the channels of other libraries, because those choose them.
fn belongings(target: &LockTarget) -> Vec<(bool, String)> {
    let keys = Keys::of(target);
    let channels = [&keys.channel, &keys.native].into_iter().flatten();
    let channels = channels.map(|name| String::from_utf8(name.to_vec()).unwrap());
    let inbox = keys.inbox.iter().map(|inbox| format!("{inbox}{:032x}", 7));
    let mut found: Vec<_> = channels.chain(inbox).map(|name| (false, name)).collect();
    let mut names = keys.names.clone();
    match target.kind() {
        LockKind::Read | LockKind::Write => {
            // The last is no key, but the prefix of readers' keys.
            let readers = names.pop().unwrap();
            names.push(format!("{readers}{OWNER}:rwlock_timeout:1"));
        }
        LockKind::Semaphore | LockKind::PermitSemaphore | LockKind::Latch => {
            let name = target.key();
            let tagged = if name.contains('{') {
                name.into_owned()
            } else {
                format!("{{{name}}}")
            };
            names.push(format!("locktopus_done:{tagged}{OWNER}"));
        }
        _ => {}
    }
    if let Some(Notification::List(list)) = &keys.notification {
        found.push((true, list.clone()));
    }
    found.extend(names.into_iter().map(|name| (true, name)));
    found
}

/// No two accepted names share a key or a channel, for any kinds of lock. Kinds of one name share
/// some; a mutex is the same lock under every name that makes the same key.
#[test]
fn different_names_share_nothing() {
    let mut kinds = kinds();
    let profile = MutexProfile::python_redis_lock();
    kinds.push(LockKind::Mutex(Arc::new(profile)));
    let braced = MutexProfile::default().key_template("{{name}}").unwrap();
    kinds.push(LockKind::Mutex(Arc::new(braced)));
    let mut owners: HashMap<(bool, String), String> = HashMap::new();
    let (mut accepted, mut refused) = (0, 0);
    for name in names_of(3) {
        for kind in &kinds {
            let target = LockTarget::new(LockName::new(&name).unwrap(), kind.clone());
            if target.check_name().is_err() {
                refused += 1;
                continue;
            }
            accepted += 1;
            let key = target.key().into_owned();
            for thing in belongings(&target) {
                let owner = owners.entry(thing).or_insert_with_key(|_| key.clone());
                assert_eq!(
                    *owner,
                    key,
                    "{:?} share something",
                    [owner.clone(), key.clone()]
                );
            }
        }
    }
    assert!(
        accepted > 50_000 && refused > 5_000,
        "{accepted} accepted, {refused} refused"
    );
}

/// Only names that would share something are refused: without the rule, the test above would find
/// each of these.
#[test]
fn names_are_refused_for_a_reason() {
    let lock = |name: &str, kind| LockTarget::new(LockName::new(name).unwrap(), kind);
    for (name, other, kind) in [
        ("{n}", "n", LockKind::Reentrant),
        ("{n}:timeout", "n", LockKind::PermitSemaphore),
        ("a{n}:timeout", "a{n}", LockKind::PermitSemaphore),
        ("redisson_lock_token:{n}", "n", LockKind::Reentrant),
        ("locktopus_kind:{n}", "n", LockKind::Latch),
        ("locktopus_queue:a{n}", "a{n}", LockKind::Write),
    ] {
        let refused = lock(name, kind.clone());
        let error = refused.check_name().unwrap_err();
        assert!(
            matches!(&error, NameError::Ambiguous { name: named, .. } if named == name),
            "{error}"
        );
        let theirs = belongings(&lock(other, kind));
        let shared = belongings(&refused)
            .into_iter()
            .any(|thing| theirs.contains(&thing));
        assert!(shared, "{name} and {other} share nothing");
    }
}

/// The two ways to compute slots share nothing but the specification.
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
